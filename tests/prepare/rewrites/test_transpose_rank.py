"""A Transpose of more dimensions than HTP has, between Reshapes: the same elements in the same order."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto

from qnn.prepare.rewrites.transpose_rank import merged
from tests.prepare.graphs import Array, model, node, noise, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten


def moved(shape: list[int], perm: list[int], *, after: list[int] | None = None) -> tuple[ModelProto, dict[str, Array]]:
    flat = [prod(shape[:3]), prod(shape[3:])]
    nodes = [
        node("Reshape", ["x", "inner"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=perm),
        node("Reshape", ["t", "outer"], ["y"]),
    ]
    constants = {"inner": np.array(shape), "outer": np.array(after or [-1, shape[perm[-1]]])}
    return model(nodes, [value("x", flat)], [value("y", None)], constants), {"x": noise(*flat)}


@pytest.mark.parametrize(
    ("shape", "perm", "after"),
    [
        ([1, 2, 4, 3, 4, 3], [0, 1, 3, 5, 2, 4], [1, 18, 4, 4]),  # PixelUnshuffle(3)
        ([2, 3, 4, 2, 4, 2], [0, 1, 3, 5, 2, 4], [2, 12, 4, 4]),
        ([2, 2, 4, 2, 4, 8], [0, 1, 3, 2, 4, 5], [8, 16, 8]),  # Swin's windows
        ([2, 3, 4, 2, 4, 2], [0, 1, 3, 5, 2, 4], [0, 0, -1]),  # 0 copies a size of the six
        ([1, 2, 1, 3, 1, 2, 5], [6, 0, 1, 2, 3, 4, 5], [5, 12]),
    ],
)
def test_rewritten(shape: list[int], perm: list[int], after: list[int]) -> None:
    made, feeds = moved(shape, perm, after=after)
    rewritten = assert_rewritten(made, feeds, "transpose-rank")
    assert all(len(v.type.tensor_type.shape.dim) <= 5 for v in rewritten.graph.value_info)


@pytest.mark.parametrize("axis", [0, 4])
def test_unfold(axis: int) -> None:
    places = np.arange(3)[:, None] + np.arange(6)
    nodes = [
        node("Gather", ["x", "rows"], ["r"], axis=2),
        node("Gather", ["r", "columns"], ["c"], axis=axis),
        node("Transpose", ["c"], ["t"], perm=[0, 1, 2, 4, 3, 5] if axis else [2, 0, 1, 3, 4, 5]),
        node("Reshape", ["t", "outer"], ["y"]),
    ]
    constants = {"rows": places, "columns": places if axis else np.array([[1, 0], [0, 1]]), "outer": np.array([1, -1])}
    made = model(nodes, [value("x", [2, 4, 8, 8])], [value("y", None)], constants)
    rewritten = assert_rewritten(made, {"x": noise(2, 4, 8, 8)}, "transpose-rank")
    assert all(len(v.type.tensor_type.shape.dim) <= 5 for v in rewritten.graph.value_info)


@pytest.mark.parametrize(
    ("shape", "perm", "said"),
    [([2, 2, 3, 2, 2, 3], [5, 4, 3, 2, 1, 0], "moves 6 dimensions"), ([2, 3, 2, 4, 5], [4, 3, 2, 1, 0], "")],
)
def test_left(shape: list[int], perm: list[int], said: str) -> None:
    made, feeds = moved(shape, perm)
    assert said in "".join(assert_left(made, feeds, "transpose-rank"))


@given(
    st.integers(1, 7).flatmap(
        lambda n: st.tuples(st.lists(st.integers(1, 3), min_size=n, max_size=n), st.permutations(range(n)))
    )
)
def test_merged_moves_the_same(given_: tuple[list[int], list[int]]) -> None:
    shape, perm = given_
    sizes, order = merged(shape, perm)
    x = np.arange(prod(shape))
    np.testing.assert_array_equal(x.reshape(sizes).transpose(order).ravel(), x.reshape(shape).transpose(perm).ravel())
