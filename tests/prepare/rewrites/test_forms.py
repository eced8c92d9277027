"""Rewrites of forms that the compiler refuses: Erf, GatherND, computed Clip, written-out defaults, float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

from tests.prepare.graphs import FLOAT, INT64, model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten

ROOT = {"root": np.float32(np.sqrt(2)), "inverse": np.float32(np.sqrt(0.5)), "one": np.float32(1)}
HALF = {"half": np.float32(0.5), "two": np.float32(2)}


def unary(nodes: list[Any], constants: dict[str, Any], shape: tuple[int, ...] = (4, 32)) -> ModelProto:
    return model(nodes, [value("x", shape)], [value("y", shape)], constants)


def gelu(scale: str = "Div", *, left: bool = False, half: str = "") -> list[Any]:
    """x·(1+erf(x/√2)), with the factor 0.5 before or behind, or without."""
    nodes = [node(scale, ["x", "root" if scale == "Div" else "inverse"], ["z"]), node("Erf", ["z"], ["e"])]
    nodes += [node("Add", ["one", "e"] if left else ["e", "one"], ["p"])]
    if half == "before":
        return [*nodes, node("Mul", ["x", "half"], ["h"]), node("Mul", ["h", "p"], ["y"])]
    if half == "behind":
        return [*nodes, node("Mul", ["p", "x"], ["g"]), node("Mul", ["g", "half"], ["y"])]
    return [*nodes, node("Mul", ["p", "x"] if left else ["x", "p"], ["y"])]


@pytest.mark.parametrize("scale", ["Div", "Mul"])
@pytest.mark.parametrize("left", [False, True])
def test_gelu_without_its_half_gets_it(scale: str, *, left: bool) -> None:
    after = assert_rewritten(unary(gelu(scale, left=left), ROOT), {"x": noise(4, 32) * np.float32(3)}, "lone-erf")
    assert operators(after) == ["Div", "Erf", "Add", "Mul", "Mul", "Mul"]


@pytest.mark.parametrize("half", ["before", "behind"])
@pytest.mark.parametrize("scale", ["Div", "Mul"])
def test_whole_gelu_is_left(scale: str, half: str) -> None:
    made = unary(gelu(scale, half=half), {**ROOT, **HALF})
    assert assert_left(made, {"x": noise(4, 32)}, "lone-erf") == []


def test_erf_by_itself_is_spelt_out_near_zero_and_far_from_it() -> None:
    made = unary([node("Neg", ["x"], ["n"]), node("Erf", ["n"], ["e"]), node("Tanh", ["e"], ["y"])], {})
    x = np.concatenate([np.linspace(-6, 6, 61), np.linspace(-0.02, 0.02, 41), [0.0, 1e-30, 5e-5]])
    feeds = {"x": np.resize(x, (4, 32)).astype(np.float32)}
    after = assert_rewritten(made, feeds, "lone-erf")
    assert operators(after).count("Erf") == 1


def test_erf_that_is_an_output() -> None:
    assert_rewritten(unary([node("Erf", ["x"], ["y"])], {}), {"x": noise(4, 32)}, "lone-erf")


def test_one_erf_in_a_gate_and_elsewhere() -> None:
    made = unary([*gelu(), node("Abs", ["e"], ["a"])], ROOT)
    made.graph.output.append(value("a", [4, 32]))
    assert_rewritten(made, {"x": noise(4, 32)}, "lone-erf", times=2)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_gather_nd_at_constant_positions(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    depth = data.draw(st.integers(1, len(shape)))
    size = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    kind = data.draw(st.sampled_from(["float", "bool", "int"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    positions = np.stack([rng.integers(-dim, dim, size) for dim in shape[:depth]], -1)
    before = {"float": "Neg", "bool": "IsNaN", "int": "Shape"}[kind]
    nodes = [node(before, ["x"], ["d"])] if kind != "int" else [node("Cast", ["x"], ["d"], to=TensorProto.INT32)]
    nodes += [node("GatherND", ["d", "at"], ["g"]), node("Cast", ["g"], ["y"], to=TensorProto.FLOAT)]
    made = model(nodes, [value("x", shape)], [value("y", [*size, *shape[depth:]])], {"at": positions})
    x = noise(*shape) * np.float32(9)
    x[x > 5] = np.nan if kind == "bool" else 0
    after = assert_rewritten(made, {"x": x}, "gather-nd")
    assert "GatherND" not in operators(after)


def test_padding_mask_is_expanded_not_gathered() -> None:
    """What transformers exports: mask[b, k] for every query."""
    batch, query, key = np.indices((1, 5, 7))
    made = model(
        [
            node("Cast", ["mask"], ["b"], to=TensorProto.BOOL),
            node("GatherND", ["b", "at"], ["g"]),
            node("Where", ["g", "zero", "low"], ["y"]),
        ],
        [value("mask", [1, 7], INT64)],
        [value("y", [1, 5, 7])],
        {"at": np.stack([batch, key], -1), "zero": np.float32(0), "low": np.float32(-1e4)},
    )
    after = assert_rewritten(made, {"mask": np.array([[1, 1, 1, 0, 1, 0, 0]])}, "gather-nd")
    assert query.max() == 4
    assert "Gather" not in operators(after)
    assert "Expand" in operators(after)


def test_gather_nd_at_computed_positions_is_left_and_said() -> None:
    made = model(
        [node("GatherND", ["x", "at"], ["y"])],
        [value("x", [3, 4]), value("at", [2, 2], INT64)],
        [value("y", [2])],
    )
    [said] = assert_left(made, {"x": noise(3, 4), "at": np.array([[0, 1], [2, 3]])}, "gather-nd")
    assert "its positions are computed" in said


@pytest.mark.parametrize("bounds", ["both", "low", "high", "mixed"])
def test_clip_with_computed_bounds(bounds: str) -> None:
    names = {"both": ["lo", "hi"], "low": ["lo"], "high": ["", "hi"], "mixed": ["fixed", "hi"]}[bounds]
    made = model(
        [
            node("ReduceMin", ["c"], ["least"], keepdims=0),
            node("Mul", ["least", "half"], ["lo"]),
            node("Neg", ["lo"], ["hi"]),
            node("Clip", ["x", *names], ["y"]),
        ],
        [value("x", [4, 32]), value("c", [5])],
        [value("y", [4, 32])],
        {**HALF, "fixed": np.float32(-0.1)},
    )
    after = assert_rewritten(made, {"x": noise(4, 32), "c": noise(5)}, "computed-clip")
    assert "Clip" not in operators(after)


def test_clip_with_constant_bounds_is_left() -> None:
    made = unary([node("Clip", ["x", "low", "high"], ["y"])], {"low": np.float32(-1), "high": np.float32(1)})
    assert assert_left(made, {"x": noise(4, 32)}, "computed-clip") == []


def recurrent(op: str, direction: str, **attributes: Any) -> tuple[ModelProto, dict[str, Any]]:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    ways = 2 if direction == "bidirectional" else 1
    constants = {"w": noise(ways, gates * 3, 5), "r": noise(ways, gates * 3, 3, seed=1)}
    cell = node(op, ["x", "w", "r"], ["y"], hidden_size=3, direction=direction, **attributes)
    return model([cell], [value("x", [4, 1, 5])], [value("y", [4, ways, 1, 3])], constants), {"x": noise(4, 1, 5)}


@pytest.mark.parametrize(
    ("op", "written"), [("LSTM", ["Sigmoid", "Tanh", "Tanh"]), ("GRU", ["sigmoid", "tanh"]), ("RNN", ["Tanh"])]
)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_default_activations_are_dropped(op: str, written: list[str], direction: str) -> None:
    both = written * (2 if direction == "bidirectional" else 1)
    made, feeds = recurrent(op, direction, activations=both)
    after = assert_rewritten(made, feeds, "default-activations")
    assert "activations" not in {attribute.name for attribute in after.graph.node[0].attribute}


def test_other_activations_are_left_and_said() -> None:
    made, feeds = recurrent("LSTM", "forward", activations=["Sigmoid", "Relu", "Tanh"])
    [said] = assert_left(made, feeds, "default-activations")
    assert "sigmoid, relu, tanh are not the defaults" in said


def double(constant: float, *, source: int = FLOAT) -> ModelProto:
    return model(
        [
            node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
            node("Mul", ["d", "k"], ["m"]),
            node("Exp", ["m"], ["e"]),
            node("Cast", ["e"], ["y"], to=TensorProto.FLOAT),
        ],
        [value("x", [4, 8], source)],
        [value("y", [4, 8])],
        {"k": np.float64(constant)},
    )


def test_double_inside_becomes_float() -> None:
    after = assert_rewritten(double(0.1), {"x": noise(4, 8)}, "double-to-float")
    types = {v.type.tensor_type.elem_type for v in after.graph.value_info}
    types |= {tensor.data_type for tensor in after.graph.initializer}
    assert TensorProto.DOUBLE not in types


@pytest.mark.parametrize(
    ("constant", "source", "said"),
    [
        (1e-50, FLOAT, "the constant k has values that float32 does not have"),
        (1e300, FLOAT, "the constant k has values that float32 does not have"),
        (float(2**24 + 1), FLOAT, "the constant k has values that float32 does not have"),
        (0.1, INT64, "makes float64 of integers that may exceed 2^24"),
    ],
)
def test_double_that_float_is_not_enough_for(constant: float, source: int, said: str) -> None:
    made = double(constant, source=source)
    x = np.zeros((4, 8), helper.tensor_dtype_to_np_dtype(source))
    [line] = assert_left(made, {"x": x}, "double-to-float")
    assert line.startswith("not-rewritten") and said in line  # noqa: PT018
