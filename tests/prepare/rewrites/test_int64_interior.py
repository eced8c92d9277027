"""int64 inside a graph becomes int32 where it fits and saves Casts, exactly; what may not fit is left and said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto

from tests.prepare.graphs import FLOAT, INT32, INT64, Array, model, node, noise, operators, run, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

NAME = "int64-interior"
IDS = np.array([[3, 7, 40, 2, 0, 9]], np.int32)
TABLE = noise(50, 8)


def wide(nodes: Sequence[NodeProto], constants: dict[str, Any], *, output: tuple[str, Any, int]) -> ModelProto:
    """ids int32[1,6] → Cast → i int64 → nodes → an output as (name, shape, dtype)."""
    cast = node("Cast", ["ids"], ["i"], to=INT64)
    name, shape, dtype = output
    return model([cast, *nodes], [value("ids", [1, 6], INT32)], [value(name, shape, dtype)], constants)


def looked_up(nodes: Sequence[NodeProto], constants: dict[str, Any], last: str) -> ModelProto:
    """The same, and rows of a table of 50 at the end."""
    gather = node("Gather", ["table", last], ["y"])
    return wide([*nodes, gather], {"table": TABLE, **constants}, output=("y", None, FLOAT))


def types(made: ModelProto) -> set[int]:
    """The types of all tensors that nodes make."""
    values = [*made.graph.value_info, *made.graph.output]
    computed = {name for entry in made.graph.node for name in entry.output}
    return {int(v.type.tensor_type.elem_type) for v in values if v.name in computed}


def test_indices_that_a_table_bounds_become_int32() -> None:
    """ids + 1 may be 2^31 by itself; as a row of a table of 50 it is below 50."""
    made = looked_up([node("Add", ["i", "one"], ["at"])], {"one": np.array([1])}, "at")
    after = assert_rewritten(made, {"ids": IDS}, NAME)
    assert operators(after) == ["Add", "Less", "Add", "Where", "Gather"]  # computed-index is the middle
    assert INT64 not in types(after)


def test_a_mask_and_a_count_become_int32() -> None:
    """Where, Less, Cast from bool, ReduceSum, CumSum; the constants as well."""
    nodes = [
        node("Less", ["i", "ten"], ["small"]),
        node("Cast", ["small"], ["one"], to=INT64),
        node("CumSum", ["one", "axis"], ["place"]),
        node("ReduceSum", ["one", "axes"], ["count"]),
        node("Sub", ["count", "place"], ["left"]),
        node("Where", ["small", "left", "zero"], ["masked"]),
        node("Cast", ["masked"], ["y"], to=FLOAT),
    ]
    constants = {"ten": np.array(10), "axis": np.array(1), "axes": np.array([1]), "zero": np.array([0])}
    after = assert_rewritten(wide(nodes, constants, output=("y", [1, 6], FLOAT)), {"ids": IDS}, NAME, times=2)
    assert INT64 not in types(after)
    assert operators(after).count("Cast") == 2  # from bool, and to float
    kinds = {tensor.name: tensor.data_type for tensor in after.graph.initializer}
    assert kinds["axes"] == INT64  # ReduceSum's axes are int64 by ONNX's word


def test_a_graph_output_keeps_its_type() -> None:
    nodes = [node("Min", ["i", "cap"], ["low"]), node("Max", ["low", "zero"], ["y"]), node("Neg", ["y"], ["n"])]
    made = wide(nodes, {"cap": np.array([20]), "zero": np.array([0])}, output=("y", [1, 6], INT64))
    made.graph.output.append(value("n", [1, 6], INT64))
    after = assert_rewritten(made, {"ids": IDS}, NAME)
    assert [v.type.tensor_type.elem_type for v in after.graph.output] == [INT64, INT64]
    assert operators(after) == ["Min", "Max", "Cast", "Sub", "Cast"]


def test_one_constant_for_a_shape_and_a_sum_is_both() -> None:
    """[3, 2] is a Reshape's shape, which has to be int64, and a summand."""
    nodes = [
        node("Min", ["i", "fifty"], ["few"]),
        node("Max", ["few", "zero"], ["whole"]),
        node("Reshape", ["whole", "sizes"], ["rows"]),
        node("Sub", ["rows", "sizes"], ["moved"]),
        node("Cast", ["moved"], ["y"], to=FLOAT),
    ]
    constants = {"sizes": np.array([3, 2]), "fifty": np.array(50), "zero": np.array(0)}
    after = assert_rewritten(wide(nodes, constants, output=("y", [3, 2], FLOAT)), {"ids": IDS}, NAME)
    assert INT64 not in types(after)
    assert sorted(tensor.data_type for tensor in after.graph.initializer) == [INT32, INT32, INT32, INT64]


def test_position_found_and_compared_stays_for_one_cast_more() -> None:
    """ArgMax gives int64 by ONNX's word, and the compiler makes int32 of it without a Cast."""
    made = model(
        [
            node("ArgMax", ["x"], ["best"], axis=1),
            node("Add", ["best", "one"], ["at"]),
            node("Gather", ["table", "at"], ["y"]),
        ],
        [value("x", [1, 16])],
        [value("y", None)],
        {"one": np.array([1]), "table": TABLE},
    )
    assert assert_left(made, {"x": noise(1, 16)}, NAME) == []


def test_position_found_gets_a_cast_where_two_are_saved() -> None:
    made = looked_up(
        [
            node("ArgMax", ["x"], ["best"], axis=1),
            node("Cast", ["j"], ["jj"], to=INT64),
            node("Add", ["best", "i"], ["sum"]),
            node("Sub", ["sum", "jj"], ["at"]),
        ],
        {},
        "at",
    )
    made.graph.input.extend([value("x", [1, 16]), value("j", [1, 6], INT32)])
    feeds = {"ids": IDS, "x": np.eye(1, 16, 3, dtype=np.float32), "j": np.zeros((1, 6), np.int32)}
    [said] = assert_left(made, feeds, NAME)  # best + i may be 2^31 - 1 + 15
    assert "sum may exceed 32 bits (-2.1475e+09 to 2.1475e+09), and HTP has 32" in said
    made.graph.node[0].CopyFrom(node("Cast", ["small"], ["i"], to=INT64))
    made.graph.node.insert(0, node("Clip", ["ids", "zero", "forty"], ["small"]))
    made.graph.initializer.extend(model([], [], [], {"zero": np.int32(0), "forty": np.int32(40)}).graph.initializer)
    after = assert_rewritten(made, feeds, NAME)
    assert operators(after).count("Cast") == 1
    assert INT32 in types(after)


@pytest.mark.parametrize(
    ("nodes", "constants", "said"),
    [
        (
            [node("Equal", ["i", "seven"], ["e"]), node("Where", ["e", "big", "i"], ["y"])],
            {"seven": np.array(7), "big": np.array([2**31])},
            "the constant big has values beyond 32 bits, and HTP has 32",
        ),
        (
            [node("Mul", ["i", "million"], ["m"]), node("Div", ["m", "million"], ["y"])],
            {"million": np.array([10**6])},
            "m may exceed 32 bits (-2.1475e+15 to 2.1475e+15), and HTP has 32",
        ),
        (
            [node("Add", ["i", "one"], ["y"])],
            {"one": np.array([1])},
            "y may exceed 32 bits (-2.1475e+09 to 2.1475e+09), and HTP has 32",
        ),
    ],
)
def test_what_may_not_fit_is_left_and_said(nodes: list[NodeProto], constants: dict[str, Any], said: str) -> None:
    made = wide(nodes, constants, output=("y", [1, 6], INT64))
    [line] = assert_left(made, {"ids": IDS}, NAME)
    assert line.startswith("not-rewritten")
    assert line.endswith(said)


def test_the_largest_and_the_smallest_int32_fit() -> None:
    ends = np.array([2**31 - 1, -(2**31)])
    nodes = [node("Concat", ["i", "ends"], ["c"], axis=1), node("Cast", ["c"], ["y"], to=TensorProto.DOUBLE)]
    nodes[1] = node("Equal", ["c", "low"], ["y"])
    made = wide(nodes, {"ends": ends[None], "low": ends[1:]}, output=("y", [1, 8], TensorProto.BOOL))
    assert_rewritten(made, {"ids": IDS}, NAME)


def test_what_wraps_around_in_int32_is_not_taken_for_positive() -> None:
    """(ids as 0 to 2^31 - 1) + 1 is -2^31 at the end, and 1 less does not fit."""
    made = model(
        [
            node("Max", ["ids", "zero"], ["positive"]),
            node("Add", ["positive", "one"], ["wrapped"]),
            node("Cast", ["wrapped"], ["i"], to=INT64),
            node("Sub", ["i", "wide_one"], ["less"]),
            node("Cast", ["less"], ["y"], to=FLOAT),
        ],
        [value("ids", [1, 6], INT32)],
        [value("y", [1, 6])],
        {"zero": np.int32(0), "one": np.int32(1), "wide_one": np.array(1)},
    )
    [said] = assert_left(made, {"ids": np.full((1, 6), 2**31 - 1, np.int32)}, NAME)
    assert "less may exceed 32 bits" in said


def test_an_int64_input_is_left_to_the_table_of_faults() -> None:
    made = model(
        [node("Expand", ["i", "shape"], ["e"]), node("Add", ["e", "one"], ["y"])],
        [value("i", [1, 3], INT64)],
        [value("y", [2, 3], INT64)],
        {"shape": np.array([2, 3]), "one": np.array([1])},
    )
    assert assert_left(made, {"i": np.array([[5, 2**31 + 5, -7]])}, NAME) == []


# Steps of generated graphs: (operator, its constant).
_PLAIN = ["Abs", "CumSum", "ReduceMax", "Transpose", "Tile", "Where", "Concat", "Clip"]
_STEPS = st.one_of(
    st.tuples(st.sampled_from(["Add", "Sub", "Min", "Max", "Mul"]), st.integers(-9, 9)),
    st.tuples(st.sampled_from(["Div", "Mod"]), st.integers(1, 9)),
    st.tuples(st.sampled_from(_PLAIN), st.just(0)),
    st.tuples(st.sampled_from(["Add", "Mul"]), st.sampled_from([10**5, 2**31 - 1, 2**40])),
)  # fmt: skip


def _generated(steps: list[tuple[str, int]], *, output: int) -> ModelProto:
    """ids int32 bounded to ±100, steps on int64, and an output of int64 or float."""
    made = [node("Clip", ["ids", "low", "high"], ["c"]), node("Cast", ["c"], ["t0"], to=INT64)]
    constants: dict[str, Any] = {
        "low": np.int32(-100), "high": np.int32(100), "axis": np.array(1), "twice": np.array([1, 2]),
        "three": np.array(3), "fifty": np.array(50), "pair": np.array([[4, -5]]),
    }  # fmt: skip
    for number, (op, number_given) in enumerate(steps):
        before, after, extra = f"t{number}", f"t{number + 1}", f"k{number}"
        match op:
            case "Abs":
                made.append(node(op, [before], [after]))
            case "CumSum":
                made.append(node(op, [before, "axis"], [after]))
            case "ReduceMax":
                made.append(node(op, [before], [after], axes=[1], keepdims=1))
            case "Transpose":
                made += [
                    node(op, [before], [f"{after}_t"], perm=[1, 0]),
                    node("Flatten", [f"{after}_t"], [after], axis=0),
                ]
            case "Tile":
                made.append(node(op, [before, "twice"], [after]))
            case "Where":
                made += [
                    node("Less", [before, "three"], [f"{after}_b"]),
                    node(op, [f"{after}_b", before, "fifty"], [after]),
                ]
            case "Concat":
                made.append(node(op, [before, "pair"], [after], axis=1))
            case "Clip":
                made.append(node(op, [before, "three", "fifty"], [after]))
            case _:
                constants[extra] = np.array([number_given])
                made.append(node(op, [before, extra], [after]))
    made.append(node("Cast", [f"t{len(steps)}"], ["y"], to=output))
    return model(made, [value("ids", [1, 6], INT32)], [value("y", None, output)], constants)


@given(
    steps=st.lists(_STEPS, min_size=1, max_size=5),
    ids=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=6, max_size=6),
    output=st.sampled_from([FLOAT, INT32]),
)
@settings(max_examples=60, deadline=None)
def test_generated_graphs_compute_the_same_integers(steps: list[tuple[str, int]], ids: list[int], output: int) -> None:
    made = _generated(steps, output=output)
    feeds: dict[str, Array] = {"ids": np.array([ids], np.int32)}
    changes, after = prepared_with(made, feeds, int64_interior=True)
    [expected], [got] = run(made, feeds), run(after, feeds)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)
    mine = [change for change in changes if f": {NAME}: " in change]
    if any(number > 2**31 - 1 for _, number in steps):
        assert not any(change.startswith("rewritten") for change in mine)
    else:
        assert len(mine) <= 1
        rewritten = any(change.startswith("rewritten") for change in mine)
        assert rewritten == (INT64 not in types(after))
