"""Sigmoid as 1 / (1 + exp(-x)): the same numbers, when it is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_rewritten, prepared_with

WIDE = np.linspace(-200, 200, 801, dtype=np.float32).reshape(1, 801)


@pytest.mark.parametrize("opset", [11, 13, 17, 22])
def test_every_sigmoid_is_written_out(opset: int) -> None:
    nodes = [node("Sigmoid", ["x"], ["s"]), node("Mul", ["s", "x"], ["m"]), node("Sigmoid", ["m"], ["y"])]
    made = model(nodes, [value("x", [3, 7])], [value("y", [3, 7])], opset=opset)
    after = assert_rewritten(made, {"x": noise(3, 7)}, "sigmoid-written-out", times=2)
    assert "Sigmoid" not in operators(after)
    assert operators(after).count("Exp") == 2


def test_both_ends_are_0_and_1_and_small_results_keep_their_digits() -> None:
    made = model([node("Sigmoid", ["x"], ["y"])], [value("x", [1, 801])], [value("y", [1, 801])])
    after = assert_rewritten(made, {"x": WIDE}, "sigmoid-written-out")
    assert operators(after)[-1] == "Div"


def test_left_alone_unless_it_is_asked_for() -> None:
    made = model([node("Sigmoid", ["x"], ["y"])], [value("x", [1, 801])], [value("y", [1, 801])])
    changes, after = prepared_with(made, {"x": WIDE})
    assert (changes, operators(after)) == ([], ["Sigmoid"])
