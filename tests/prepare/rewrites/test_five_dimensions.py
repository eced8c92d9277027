"""Operators that the compiler refuses for five dimensions are computed in four, and say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.prepare.graphs import INT64, Array, model, node, noise, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten

SHAPE = (2, 4, 3, 6, 5)


def one(
    op: str, constants: dict[str, Any], *, opset: int = 20, **attributes: Any
) -> tuple[ModelProto, dict[str, Array]]:
    made = node(op, ["x", *constants], ["y"], **attributes)
    x = np.abs(noise(*SHAPE)) + np.float32(0.1) if op in ("Log", "Sqrt") else noise(*SHAPE)
    return model([made], [value("x", SHAPE)], [value("y", None)], constants, opset=opset), {"x": x}


def ranks(made: ModelProto, op: str) -> list[int]:
    """How many dimensions the first operands of these nodes have."""
    known = {v.name: v for v in (*made.graph.input, *made.graph.value_info)}
    return [len(known[n.input[0]].type.tensor_type.shape.dim) for n in made.graph.node if n.op_type == op]


@pytest.mark.parametrize(
    "op",
    [
        "Ceil",
        "Cos",
        "Elu",
        "Floor",
        "HardSigmoid",
        "HardSwish",
        "Log",
        "Neg",
        "Round",
        "Selu",
        "Sign",
        "Sin",
        "Sqrt",
        "Tanh",
    ],
)
def test_by_element(op: str) -> None:
    assert ranks(assert_rewritten(*one(op, {}), "five-dimensions"), op) == [4]


@pytest.mark.parametrize("op", ["Max", "Min"])
@pytest.mark.parametrize("shape", [(), (1,), (4, 1, 1, 1), (5,), (6, 5), (3, 6, 5), (2, 1, 1, 1, 1), (2, 4, 1, 6, 1)])
def test_largest_of_two(op: str, shape: tuple[int, ...]) -> None:
    made, feeds = one(op, {"c": noise(*shape, seed=3)})
    if shape == (2, 4, 1, 6, 1):  # n and c are alike
        assert ranks(assert_rewritten(made, feeds, "five-dimensions"), op) == [4]
    else:
        assert_rewritten(made, feeds, "five-dimensions")


def test_no_two_axes_alike() -> None:
    made, feeds = one("Max", {"c": noise(2, 1, 3, 1, 5, seed=3)})
    assert "no two dimensions" in "".join(assert_left(made, feeds, "five-dimensions"))


@pytest.mark.parametrize(
    ("op", "constants", "written"),
    [
        ("ReduceMax", {"a": np.array([2, 3, 4])}, {}),
        ("ReduceMin", {"a": np.array([1])}, {"keepdims": 0}),
        ("ReduceMax", {}, {"opset": 17, "axes": [1, 2]}),
        ("CumSum", {"a": np.array(2)}, {}),
        ("CumSum", {"a": np.array(-1)}, {"reverse": 1}),
        ("LayerNormalization", {"s": noise(5, seed=1), "b": noise(5, seed=2)}, {}),
    ],
)
def test_along_axes(op: str, constants: dict[str, Any], written: dict[str, Any]) -> None:
    assert set(ranks(assert_rewritten(*one(op, constants, **written), "five-dimensions"), op)) <= {4, 2, 3}


@pytest.mark.parametrize(("axes", "keep"), [([-1], 1), ([2, 3, 4], 0)])
def test_norm(axes: list[int], keep: int) -> None:
    # Three nodes: the largest magnitude and its floor, which reduce-l2-range puts in front, are among them.
    made, feeds = one("ReduceL2", {"a": np.array(axes)}, keepdims=keep)
    assert ranks(assert_rewritten(made, feeds, "five-dimensions", times=3 if axes != [-1] else 2), "ReduceL2") == [4]


@pytest.mark.parametrize(
    ("op", "constants"), [("Relu", {}), ("Exp", {}), ("ReduceMax", {"a": np.array([4])}), ("Add", {"c": noise(5)})]
)
def test_what_is_right_stays(op: str, constants: dict[str, Any]) -> None:
    assert assert_left(*one(op, constants), "five-dimensions") == []


@pytest.mark.parametrize(("axis", "keep", "found"), [(1, 0, True), (4, 0, True), (1, 1, False)])
def test_position_of_the_largest(axis: int, keep: int, *, found: bool) -> None:
    made = node("ArgMax", ["x"], ["y"], axis=axis, keepdims=keep)
    graph = model([made], [value("x", SHAPE)], [value("y", None, INT64)])
    if found:
        assert ranks(assert_rewritten(graph, {"x": noise(*SHAPE)}, "arg-flat"), "ArgMax") == [3 if axis == 1 else 2]
    else:  # a result of five dimensions crashes the compiler
        assert_left(graph, {"x": noise(*SHAPE)}, "arg-flat")
