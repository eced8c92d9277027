"""Constants beyond 32 bits are put at the end of int32 where only the order of numbers matters, and left elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto

from tests.prepare.graphs import FLOAT, INT32, INT64, Array, model, node, run, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

NAME = "wide-constants"
LEAST, MOST = -(2**31), 2**31 - 1
IDS = np.array([[3, MOST, LEAST, -1, 0, 7]], np.int32)
FAR = 2**63 - 1
BOOL = TensorProto.BOOL


def wide(nodes: Sequence[NodeProto], constants: dict[str, Any], output: int = INT64) -> ModelProto:
    """ids int32[1,6] → Cast → i int64 → nodes → y."""
    cast = node("Cast", ["ids"], ["i"], to=INT64)
    arrays = {name: np.asarray(array, np.int64) for name, array in constants.items()}
    return model([cast, *nodes], [value("ids", [1, 6], INT32)], [value("y", None, output)], arrays, opset=18)


def constants_of(made: ModelProto) -> list[int]:
    """Every number of every integer initializer."""
    kinds = (INT32, INT64)
    return [int(n) for t in made.graph.initializer if t.data_type in kinds for n in np_of(t).reshape(-1)]


def np_of(tensor: TensorProto) -> Array:
    from onnx import numpy_helper  # noqa: PLC0415 - one use

    array: Array = numpy_helper.to_array(tensor)
    return array


@pytest.mark.parametrize("far", [2**31, 2**40 + 7, FAR, LEAST - 1, -(2**40), -(2**63)])
@pytest.mark.parametrize("operator", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
@pytest.mark.parametrize("swapped", [False, True])
def test_comparisons_with_what_no_int32_reaches(operator: str, far: int, swapped: bool) -> None:
    """At 2^31 - 1 and -2^31 too, and beside constants that int32 has."""
    given_ = ["k", "i"] if swapped else ["i", "k"]
    made = wide([node(operator, given_, ["y"])], {"k": [far, 5, far, -1, 0, 7]}, BOOL)
    after = assert_rewritten(made, {"ids": IDS}, NAME)
    assert all(LEAST <= number <= MOST for number in constants_of(after))


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ([node("Clip", ["i", "zero", "far"], ["y"])], {"zero": 0, "far": FAR}),
        ([node("Clip", ["i", "near", "zero"], ["y"])], {"zero": 0, "near": -(2**40)}),
        ([node("Min", ["i", "far"], ["y"])], {"far": 2**40}),
        ([node("Max", ["i", "near", "one"], ["y"])], {"near": -FAR, "one": 1}),
    ],
)
def test_bounds_that_bind_nothing(nodes: list[NodeProto], constants: dict[str, int]) -> None:
    after = assert_rewritten(wide(nodes, constants), {"ids": IDS}, NAME)
    assert all(LEAST <= number <= MOST for number in constants_of(after))


def masked(*, behind: Sequence[NodeProto], **constants: Any) -> ModelProto:
    """w = 2^63 - 1 where i is -1, else i."""
    nodes = [node("Equal", ["i", "none"], ["e"]), node("Where", ["e", "far", "i"], ["w"]), *behind]
    return wide(nodes, {"none": -1, "far": FAR, "last": [1], **constants})


def test_a_mark_that_a_minimum_passes_by() -> None:
    made = masked(behind=[node("ReduceMin", ["w", "last"], ["y"])])
    after = assert_rewritten(made, {"ids": np.array([[3, 9, -1, 40, 7, 8]], np.int32)}, NAME)
    assert FAR not in constants_of(after)
    assert MOST in constants_of(after)


def test_a_mark_that_is_moved_tested_and_replaced() -> None:
    """Where nothing is left over, the minimum is the mark, which Equal has to find still."""
    behind = [
        node("Transpose", ["w"], ["t"], perm=[1, 0]),
        node("ReduceMin", ["t", "first"], ["least"], keepdims=0),
        node("Equal", ["least", "far"], ["nothing"]),
        node("Where", ["nothing", "none", "least"], ["y"]),
    ]
    made = masked(behind=behind, first=[0])
    after = assert_rewritten(made, {"ids": IDS}, NAME, times=2)
    feeds = {"ids": np.full((1, 6), -1, np.int32)}
    assert run(after, feeds)[0].tolist() == run(made, feeds)[0].tolist() == [-1]


def test_all_masked_is_the_end_of_int32() -> None:
    """What docs/rewrites.md says of it."""
    made = masked(behind=[node("ReduceMin", ["w", "last"], ["y"])])
    _, after = prepared_with(made, {"ids": IDS}, wide_constants=True)
    assert run(after, {"ids": np.full((1, 6), -1, np.int32)})[0].tolist() == [[MOST]]


@pytest.mark.parametrize(
    ("behind", "who"),
    [
        ([node("Identity", ["w"], ["y"])], "the output y uses it"),
        ([node("Add", ["w", "none"], ["y"])], "node Add_y (Add) uses it"),
        ([node("Flatten", ["w"], ["f"]), node("Div", ["f", "last"], ["y"])], "node Div_y (Div) uses it"),
    ],
)
def test_a_mark_that_is_computed_with_is_left_and_said(behind: list[NodeProto], who: str) -> None:
    feeds = {"ids": np.array([[3, 9, -1, 40, 7, 8]], np.int32)}
    said = assert_left(masked(behind=behind, last=[2]), feeds, NAME)
    assert [line for line in said if who in line and "holds 9223372036854775807" in line]


def test_a_bound_that_binds_is_left() -> None:
    made = wide([node("Max", ["i", "far"], ["y"])], {"far": 2**40})
    [said] = assert_left(made, {"ids": IDS}, NAME)
    assert "the constant far holds 1099511627776, of which HTP has the low 32 bits, and the output y uses it" in said


def test_shapes_and_slices_are_not_concerned() -> None:
    """Slice takes 2^63 - 1 for the end of an axis, in the compiler too."""
    made = wide([node("Slice", ["i", "start", "end", "axis"], ["y"])], {"start": [1], "end": [FAR], "axis": [1]})
    assert assert_left(made, {"ids": IDS}, NAME) == []


_NUMBERS = st.one_of(st.integers(-9, 9), st.sampled_from([2**31, -(2**31) - 1, 2**40, -FAR, FAR, MOST, LEAST]))


@given(
    operator=st.sampled_from(["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Min", "Max", "Clip"]),
    numbers=st.lists(_NUMBERS, min_size=6, max_size=6),
    ids=st.lists(st.one_of(st.integers(-9, 9), st.sampled_from([LEAST, MOST])), min_size=6, max_size=6),
)
@settings(max_examples=40, deadline=None)
def test_whatever_is_rewritten_computes_the_same(operator: str, numbers: list[int], ids: list[int]) -> None:
    output = INT64 if operator in ("Min", "Max", "Clip") else BOOL
    constants = {"k": numbers[0], "top": max(numbers)} if operator == "Clip" else {"k": numbers}
    made = wide([node(operator, ["i", *constants], ["y"])], constants, output)
    feeds: dict[str, Array] = {"ids": np.array([ids], np.int32)}
    _, after = prepared_with(made, feeds)
    np.testing.assert_array_equal(run(after, feeds)[0], run(made, feeds)[0])


def test_float_constants_are_not_concerned() -> None:
    made = model(
        [node("Min", ["x", "far"], ["y"])], [value("x", [2, 3])], [value("y", [2, 3], FLOAT)], {"far": np.float32(1e12)}
    )
    assert assert_left(made, {"x": np.ones((2, 3), np.float32)}, NAME) == []


def test_an_opset_without_less_or_equal_is_left() -> None:
    made = wide([node("Less", ["i", "far"], ["y"])], {"far": [2**40]}, BOOL)
    made.opset_import[0].version = 11
    [said] = assert_left(made, {"ids": IDS}, NAME)
    assert said.endswith("opset 11 has no comparison that holds for equal numbers")
