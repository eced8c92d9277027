"""The logarithm of a sum of two powers (torch.logaddexp) keeps to fp16's range."""

from __future__ import annotations

import numpy as np
import pytest

from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten


@pytest.mark.parametrize("shape", [(4, 30), (30,), (4, 1)])
def test_logaddexp(shape: tuple[int, ...]) -> None:
    nodes = [node("Exp", ["a"], ["p"]), node("Exp", ["b"], ["q"]), node("Add", ["p", "q"], ["s"])]
    nodes.append(node("Log", ["s"], ["y"]))
    made = model(nodes, [value("a", [4, 30]), value("b", shape)], [value("y", None)])
    feeds = {"a": noise(4, 30) * np.float32(20), "b": noise(*shape, seed=1) * np.float32(20)}
    after = operators(assert_rewritten(made, feeds, "softmax-written-out"))
    assert "Log" not in after
    assert "Max" in after


def test_a_power_and_a_number_stay() -> None:
    nodes = [node("Exp", ["a"], ["p"]), node("Add", ["p", "b"], ["s"]), node("Log", ["s"], ["y"])]
    made = model(nodes, [value("a", [4, 3]), value("b", [4, 3])], [value("y", None)])
    assert assert_left(made, {"a": noise(4, 3), "b": np.abs(noise(4, 3, seed=1))}, "softmax-written-out") == []
