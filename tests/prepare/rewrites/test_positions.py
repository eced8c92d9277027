"""Positions: of the best element, of one among many and in several dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.prepare.graphs import FLOAT, INT32, INT64, model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten

CONV = node("Conv", ["x", "w"], ["c"])
WEIGHTS = {"w": np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1)}
IMAGE = {"x": np.round(noise(1, 4, 5, 6) * 3)}  # with ties


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("axis", "keepdims", "last"), [(1, 1, 0), (-1, 0, 1), (2, 1, 1), (0, 0, 0)])
def test_the_best_behind_a_conv_is_found_on_a_flat_tensor(operator: str, axis: int, keepdims: int, last: int) -> None:
    best = node(operator, ["c"], ["y"], axis=axis, keepdims=keepdims, select_last_index=last)
    made = model([CONV, best], [value("x", [1, 4, 5, 6])], [value("y", None, INT64)], WEIGHTS)
    if last:  # it is counted back from the other end, so that a Sub makes the output
        assert_rewritten(made, IMAGE, "cast-flat")
        return
    after = assert_rewritten(made, IMAGE, "arg-flat")
    assert operators(after)[-3:] == ["Reshape", operator, "Reshape"]


def test_the_best_channel_without_its_axis_and_one_that_is_no_output_stay() -> None:
    channel = node("ArgMax", ["c"], ["y"], axis=1, keepdims=0)
    made = model([CONV, channel], [value("x", [1, 4, 5, 6])], [value("y", None, INT64)], WEIGHTS)
    assert assert_left(made, IMAGE, "arg-flat") == []
    inner = [CONV, node("ArgMax", ["c"], ["a"], axis=2), node("Cast", ["a"], ["y"], to=FLOAT)]
    made = model(inner, [value("x", [1, 4, 5, 6])], [value("y", None)], WEIGHTS)
    assert assert_left(made, IMAGE, "arg-flat") == []


def test_an_int64_output_behind_a_conv_is_cast_flat() -> None:
    nodes = [CONV, node("Cast", ["c"], ["n"], to=INT32), node("Cast", ["n"], ["y"], to=INT64)]
    made = model(nodes, [value("x", [1, 4, 5, 6])], [value("y", None, INT64)], WEIGHTS)
    assert_rewritten(made, IMAGE, "cast-flat")


def test_an_int64_output_of_another_operator_is_cast_flat_and_still_read() -> None:
    nodes = [
        CONV,
        node("Greater", ["c", "zero"], ["g"]),
        node("Where", ["g", "one", "two"], ["y"]),
        node("Cast", ["y"], ["z"], to=FLOAT),
    ]
    constants = {**WEIGHTS, "zero": np.float32(0), "one": np.array(1), "two": np.array(2)}
    outputs = [value("y", None, INT64), value("z", None)]
    made = model(nodes, [value("x", [1, 4, 5, 6])], outputs, constants)
    assert_rewritten(made, IMAGE, "cast-flat")


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize(("values", "kind"), [([-1.0, 2.5], FLOAT), ([0, 1], INT64)])
def test_one_hot_of_positions_from_either_end(axis: int, values: list[float], kind: int) -> None:
    made = model(
        [node("OneHot", ["i", "depth", "values"], ["y"], axis=axis)],
        [value("i", [2, 3], INT64)],
        [value("y", None, kind)],
        {"depth": np.array([8]), "values": np.array(values, np.float32 if kind == FLOAT else np.int64)},
    )
    after = assert_rewritten(made, {"i": np.array([[0, -8, 3], [7, -1, 9]])}, "one-hot")
    assert "OneHot" not in operators(after)


def test_one_hot_of_the_best_stays() -> None:
    """A position that ArgMax found is not negative."""
    made = model(
        [node("ArgMax", ["x"], ["a"], axis=1, keepdims=0), node("OneHot", ["a", "depth", "values"], ["y"])],
        [value("x", [3, 8])],
        [value("y", None)],
        {"depth": np.array(8), "values": np.array([0, 1], np.float32)},
    )
    assert assert_left(made, {"x": noise(3, 8)}, "one-hot") == []


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("shape", "positions"), [((2, 5, 4), [[1], [-1]]), ((2, 5, 4), [[[0, 1], [4, -4]]] * 2)])
def test_gather_nd_with_batch_dimensions(shape: tuple[int, ...], positions: Any, *, constant: bool) -> None:
    at = np.array(positions, np.int64)
    gather = node("GatherND", ["x", "at"], ["y"], batch_dims=1)
    inputs = [value("x", shape)] if constant else [value("x", shape), value("at", at.shape, INT64)]
    made = model([gather], inputs, [value("y", None)], {"at": at} if constant else {})
    feeds = {"x": noise(*shape)} if constant else {"x": noise(*shape), "at": at}
    after = assert_rewritten(made, feeds, "gather-nd", times=2 if constant else 1)
    assert not any(a.name == "batch_dims" for n in after.graph.node for a in n.attribute)


def test_scatter_nd_by_negative_coordinates() -> None:
    feeds = {"x": noise(6, 4), "at": np.array([[0, -1], [-6, 2], [5, 3]]), "new": noise(3, seed=4)}
    kinds = {"x": FLOAT, "at": INT64, "new": FLOAT}
    inputs = [value(name, array.shape, kinds[name]) for name, array in feeds.items()]
    made = model([node("ScatterND", list(feeds), ["y"])], inputs, [value("y", [6, 4])])
    assert_rewritten(made, feeds, "computed-index")


def test_a_triangle_of_booleans() -> None:
    made = model(
        [node("Trilu", ["x"], ["t"], upper=0), node("Cast", ["t"], ["y"], to=FLOAT)],
        [value("x", [4, 5], TensorProto.BOOL)],
        [value("y", [4, 5])],
    )
    assert "And" in operators(assert_rewritten(made, {"x": noise(4, 5) > 0}, "trilu-mask"))


def test_the_smallest_integer() -> None:
    made = model(
        [node("ArgMin", ["x"], ["y"], axis=1)],
        [value("x", [2, 4], INT32)],
        [value("y", [2, 1], INT64)],
    )
    after = assert_rewritten(made, {"x": np.array([[3, -1, 5, -1], [70000, 9, 9, 8]], np.int32)}, "integer-plain")
    assert operators(after) == ["Sub", "ArgMax"]


def test_old_opsets_without_comparisons_of_integers_are_left() -> None:
    made = model(
        [node("Gather", ["t", "at"], ["y"])],
        [value("at", [3], INT32)],
        [value("y", [3, 2])],
        {"t": noise(5, 2)},
        opset=8,
        ir=4,
    )
    assert assert_left(made, {"at": np.array([1, 0, 4], np.int32)}, "computed-index") == []


@pytest.mark.parametrize("signs", [{"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
@pytest.mark.parametrize(("shape", "axis"), [((2, 7, 3), 1), ((5, 2), -1)])
def test_running_sums_from_either_end(signs: dict[str, Any], shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.int32)
    made = model(
        [node("CumSum", ["x", "axis"], ["y"], **signs)],
        [value("x", shape, INT32)],
        [value("y", shape, INT32)],
        {"axis": np.array(axis)},
    )
    after = assert_rewritten(made, {"x": x}, "sequence-plain")
    assert not any(a.name in ("exclusive", "reverse") for n in after.graph.node for a in n.attribute)


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_sequences_of_known_lengths_are_reversed(time: int, batch: int) -> None:
    shape = (6, 3, 2) if time == 0 else (3, 6, 2)
    made = model(
        [node("ReverseSequence", ["x", "n"], ["y"], time_axis=time, batch_axis=batch)],
        [value("x", shape)],
        [value("y", shape)],
        {"n": np.array([6, 3, 1])},
    )
    assert_rewritten(made, {"x": noise(*shape)}, "sequence-plain")


def test_a_unit_matrix() -> None:
    nodes = [node("EyeLike", ["x"], ["e"], k=-1, dtype=INT32), node("Cast", ["e"], ["f"], to=FLOAT)]
    made = model([*nodes, node("Add", ["f", "x"], ["y"])], [value("x", [4, 6])], [value("y", [4, 6])])
    after = assert_rewritten(made, {"x": noise(4, 6)}, "sequence-plain")
    assert "EyeLike" not in operators(after)
