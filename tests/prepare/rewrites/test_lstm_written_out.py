"""LSTM step by step: the same numbers in every form that the operator has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

STEPS, BATCH, INPUTS, HIDDEN = 5, 2, 3, 4


def lstm(
    *, steps: int = STEPS, direction: str = "forward", bias: bool = True, states: bool = False,
    outputs: tuple[str, ...] = ("y", "h", "c"), opset: int = 17, **attributes: Any,
) -> tuple[ModelProto, dict[str, Any]]:  # fmt: skip
    """The model and what to feed it."""
    ways = 2 if direction == "bidirectional" else 1
    constants = {
        "w": noise(ways, 4 * HIDDEN, INPUTS, seed=1) * np.float32(0.5),
        "r": noise(ways, 4 * HIDDEN, HIDDEN, seed=2) * np.float32(0.5),
    }
    constants |= {"b": noise(ways, 8 * HIDDEN, seed=3)} if bias else {}
    feeds = {"x": noise(steps, BATCH, INPUTS)}
    feeds |= {"h0": noise(ways, BATCH, HIDDEN, seed=4), "c0": noise(ways, BATCH, HIDDEN, seed=5)} if states else {}
    given_inputs = ["x", "w", "r", "b" if bias else "", "", *(["h0", "c0"] if states else [])]
    while given_inputs[-1] == "":
        given_inputs.pop()
    made = node("LSTM", given_inputs, list(outputs), hidden_size=HIDDEN, direction=direction, **attributes)
    shapes = {"y": [steps, ways, BATCH, HIDDEN], "h": [ways, BATCH, HIDDEN], "c": [ways, BATCH, HIDDEN]}
    results = [value(name, shapes[name]) for name in outputs if name]
    inputs = [value(name, array.shape) for name, array in feeds.items()]
    return model([made], inputs, results, constants, opset=opset), feeds


@settings(max_examples=30, deadline=None)
@given(
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    steps=st.sampled_from([1, 2, 7]),
    bias=st.booleans(),
    states=st.booleans(),
    outputs=st.sampled_from([("y", "h", "c"), ("y",), ("", "h"), ("", "", "c"), ("", "h", "c")]),
    opset=st.sampled_from([11, 13, 17, 18, 22]),
)
def test_every_form_gives_the_same_numbers(
    direction: str, steps: int, *, bias: bool, states: bool, outputs: tuple[str, ...], opset: int
) -> None:
    made, feeds = lstm(direction=direction, steps=steps, bias=bias, states=states, outputs=outputs, opset=opset)
    after = assert_rewritten(made, feeds, "lstm-written-out")
    assert "LSTM" not in operators(after)
    ways = 2 if direction == "bidirectional" else 1
    unused = ways if outputs == ("", "", "c") else 0  # the last hidden state is made for nobody
    assert operators(after).count("Tanh") == 2 * steps * ways - unused
    # From zeros as the first state nothing is computed: only the input's MatMul is left of the first step.
    assert operators(after).count("MatMul") == ways * (1 + steps - (0 if states else 1))


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"clip": 3.0}, "it has clip"),
        ({"activations": ["Relu", "Tanh", "Tanh"]}, "it has activations"),
        ({"input_forget": 1}, "it has input_forget"),
        ({"steps": 257}, "it has 257 steps, more than 256"),
    ],
)
def test_what_is_not_written_out_is_said(attributes: dict[str, Any], why: str) -> None:
    made, feeds = lstm(**attributes)
    (said,) = assert_left(made, feeds, "lstm-written-out")
    assert why in said


def test_weights_that_were_left_in_their_file_are_fetched_and_others_are_not_written_out() -> None:
    wide = 1024  # 4 · 1024 · 4 · 3 bytes and more: past what is kept in memory
    constants = {
        "w": noise(1, 4 * wide, INPUTS, seed=1) * np.float32(0.2),
        "r": noise(1, 4 * wide, wide, seed=2) * np.float32(0.02),
    }
    made = node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=wide)
    large = model([made], [value("x", [2, 1, INPUTS])], [value("h", [1, 1, wide])], constants)
    after = assert_rewritten(large, {"x": noise(2, 1, INPUTS)}, "lstm-written-out")
    assert "LSTM" not in operators(after)
    made = node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=HIDDEN)
    del constants["w"]
    constants["r"] = noise(1, 4 * HIDDEN, HIDDEN, seed=2)
    inputs = [value("x", [2, 1, INPUTS]), value("w", [1, 4 * HIDDEN, INPUTS])]
    fed = model([made], inputs, [value("h", [1, 1, HIDDEN])], constants)
    (said,) = assert_left(fed, {"x": noise(2, 1, INPUTS), "w": noise(1, 4 * HIDDEN, INPUTS)}, "lstm-written-out")
    assert "its weights are no constants" in said


def test_left_alone_unless_it_is_asked_for() -> None:
    made, feeds = lstm()
    changes, after = prepared_with(made, feeds)
    assert (changes, operators(after)) == ([], ["LSTM"])
