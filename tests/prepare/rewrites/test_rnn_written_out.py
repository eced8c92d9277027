"""RNN step by step: the same numbers in every form that the operator has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten


def rnn(direction: str = "forward", *, steps: int = 5, bias: bool = True, state: bool = False, **more: Any) -> Any:
    ways = 2 if direction == "bidirectional" else 1
    constants = {"w": noise(ways, 4, 3, seed=1), "r": noise(ways, 4, 4, seed=2) * 0.3}
    constants |= {"b": noise(ways, 8, seed=3)} if bias else {}
    feeds = {"x": noise(steps, 2, 3), **({"h0": noise(ways, 2, 4, seed=4)} if state else {})}
    inputs = ["x", "w", "r", "b" if bias else "", "", "h0" if state else ""]
    made = node("RNN", inputs, ["y", "h"], hidden_size=4, direction=direction, **more)
    given = [value(name, array.shape) for name, array in feeds.items()]
    return model([made], given, [value("y", None), value("h", None)], constants), feeds


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("bias", "state"), [(True, False), (False, True)])
@pytest.mark.parametrize("activation", ["Tanh", "Relu"])
@pytest.mark.parametrize("steps", [1, 5])
def test_forms(direction: str, activation: str, steps: int, *, bias: bool, state: bool) -> None:
    activations = [activation] * (2 if direction == "bidirectional" else 1)
    made, feeds = rnn(direction, steps=steps, bias=bias, state=state, activations=activations)
    assert "RNN" not in operators(assert_rewritten(made, feeds, "rnn-written-out"))


@pytest.mark.parametrize(
    ("form", "why"),
    [({"clip": 0.5}, "it has clip"), ({"activations": ["Elu"]}, "activations are elu"), ({"steps": 300}, "300 steps")],
)
def test_what_is_not_written_out_is_said(form: dict[str, Any], why: str) -> None:
    made, feeds = rnn(**form)
    (said,) = assert_left(made, feeds, "rnn-written-out")
    assert why in said
