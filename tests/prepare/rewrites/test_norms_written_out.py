"""norm-written-out and centred-variance: every form, and what only looks like it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

_X = noise(2, 6, 40) * 100


@pytest.mark.parametrize("square", ["Mul", "Pow"])
@pytest.mark.parametrize("reduce", ["ReduceSum", "ReduceMean"])
@pytest.mark.parametrize("floor", ["", "Max", "Clip"])
@pytest.mark.parametrize("root", ["Sqrt", "Pow"])
@pytest.mark.parametrize("keep", [0, 1])
def test_norms(square: str, reduce: str, floor: str, root: str, keep: int) -> None:
    nodes = [node(square, ["x", "x" if square == "Mul" else "two"], ["q"])]
    nodes.append(
        node("ReduceSum", ["q", "axes"], ["s"], keepdims=keep)
        if reduce == "ReduceSum"
        else node("ReduceMean", ["q"], ["s"], axes=[1], keepdims=keep)
    )
    if floor:
        nodes.append(node(floor, ["s", "least"], ["f"]))
    nodes.append(node(root, ["f" if floor else "s", *(["half"] if root == "Pow" else [])], ["y"]))
    constants = {"two": np.float32(2), "half": np.float32(0.5), "axes": np.array([1]), "least": np.float32(40000)}
    made = model(nodes, [value("x", _X.shape)], [value("y", [2, 1, 40] if keep else [2, 40])], constants)
    after = assert_rewritten(made, {"x": _X}, "norm-written-out")
    assert "ReduceL2" in operators(after)


@pytest.mark.parametrize("inverse", ["Reciprocal", "Div"])
def test_x_by_its_norm_is_the_operator(inverse: str) -> None:
    """tf.math.l2_normalize: x · 1/√max(Σx², 1e-12)."""
    nodes = [node("Mul", ["x", "x"], ["q"]), node("ReduceSum", ["q", "axes"], ["s"]), node("Max", ["s", "e"], ["f"]),
             node("Sqrt", ["f"], ["r"]), node(inverse, [*(["one"] if inverse == "Div" else []), "r"], ["i"]),
             node("Mul", ["i", "x"], ["y"])]  # fmt: skip
    constants = {"axes": np.array([-1]), "e": np.float32(1e-12), "one": np.float32(1)}
    made = model(nodes, [value("x", _X.shape)], [value("y", _X.shape)], constants)
    after = assert_rewritten(made, {"x": _X}, "norm-written-out")
    assert operators(after) == ["LpNormalization"]


@pytest.mark.parametrize(("operator", "places"), [("Div", ("s", "k")), ("Mul", ("k", "s"))])
def test_a_deviation_of_n_less_one(operator: str, places: tuple[str, str]) -> None:
    nodes = [node("Pow", ["x", "two"], ["q"]), node("ReduceSum", ["q", "axes"], ["s"]),
             node(operator, places, ["v"]), node("Sqrt", ["v"], ["y"])]  # fmt: skip
    constants = {"two": np.float32(2), "axes": np.array([-1]), "k": np.float32(39 if operator == "Div" else 1 / 39)}
    made = model(nodes, [value("x", _X.shape)], [value("y", [2, 6, 1])], constants)
    assert_rewritten(made, {"x": _X}, "norm-written-out")


def test_norms_that_stay() -> None:
    """Bounded numbers, a constant under the root, another root."""

    def made(first: str, root: float, plus: float) -> ModelProto:
        nodes = [node(first, ["x"], ["t"]), node("Mul", ["t", "t"], ["q"]), node("ReduceSum", ["q", "axes"], ["s"]),
                 node("Add", ["s", "plus"], ["p"]), node("Pow", ["p", "root"], ["y"])]  # fmt: skip
        constants = {"axes": np.array([-1]), "root": np.float32(root), "plus": np.float32(plus)}
        return model(nodes, [value("x", _X.shape)], [value("y", [2, 6, 1])], constants)

    for first, root, plus in (("Tanh", 0.5, 0.0), ("Abs", 0.5, 1.0), ("Abs", 0.25, 0.0)):
        assert_left(made(first, root, plus), {"x": _X}, "norm-written-out")


@pytest.mark.parametrize("square", ["Mul", "Pow"])
@pytest.mark.parametrize(("keep", "axes"), [(1, [-1]), (1, [1, 2]), (0, [1])])
def test_variance(square: str, keep: int, axes: list[int]) -> None:
    second = {"Mul": ("x", "m"), "Pow": ("two", "two")}[square]
    nodes = [node(square, ["x", second[0]], ["q"]), node("ReduceMean", ["q"], ["a"], axes=axes, keepdims=keep),
             node("ReduceMean", ["x"], ["m"], axes=axes, keepdims=keep), node(square, ["m", second[1]], ["b"]),
             node("Sub", ["a", "b"], ["y"])]  # fmt: skip
    made = model(nodes, [value("x", [2, 6, 40])], [value("y", None)], {"two": np.float32(2)})
    assert_rewritten(made, {"x": noise(2, 6, 40) * 3 + 1}, "centred-variance")


def test_layer_norm_of_such_a_variance_is_the_operator() -> None:
    nodes = [node("Mul", ["x", "x"], ["q"]), node("ReduceMean", ["q"], ["a"], axes=[-1]),
             node("ReduceMean", ["x"], ["m"], axes=[-1]), node("Mul", ["m", "m"], ["b"]),
             node("Sub", ["a", "b"], ["v"]), node("Add", ["v", "e"], ["p"]), node("Sqrt", ["p"], ["r"]),
             node("Sub", ["x", "m"], ["d"]),
             node("Div", ["d", "r"], ["y"])]  # fmt: skip
    made = model(nodes, [value("x", [2, 6, 40])], [value("y", [2, 6, 40])], {"e": np.float32(1e-5)})
    after = assert_rewritten(made, {"x": noise(2, 6, 40) * 3 + 1}, "centred-variance")
    assert "Sqrt" not in operators(after)


def test_other_differences_of_squares_stay() -> None:
    nodes = [node("Mul", ["x", "x"], ["q"]), node("ReduceMean", ["q"], ["a"], axes=[-1]),
             node("ReduceMean", ["z"], ["m"], axes=[-1]), node("Mul", ["m", "m"], ["b"]),
             node("Sub", ["a", "b"], ["y"])]  # fmt: skip
    made = model(nodes, [value("x", [2, 40]), value("z", [2, 40])], [value("y", [2, 1])])
    feeds = {"x": noise(2, 40), "z": noise(2, 40, seed=1)}
    assert_left(made, feeds, "centred-variance")
    changes, _ = prepared_with(made, feeds)
    assert changes == []
