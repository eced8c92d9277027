"""Adaptive average pooling in the form that PyTorch's exporter writes: MatMuls, and only where it is a pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto

from tests.prepare.graphs import Array, model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten


def windows(before: int, after: int) -> tuple[Array, Array]:
    """Positions int64[after, longest window], clipped to the axis, and the window lengths int64[after]."""
    first = np.arange(after) * before // after
    last = -(-(np.arange(after) + 1) * before // after)
    places = first[:, None] + np.arange((last - first).max())
    return np.minimum(places, before - 1), last - first


def pooled(
    front: Sequence[int], before: tuple[int, int], after: tuple[int, int]
) -> tuple[ModelProto, dict[str, Array]]:
    """x float32[front, before] → y float32[front, after], node for node what torch.onnx.export (2.13) writes."""
    (rows, high), (columns, wide) = (windows(*sizes) for sizes in zip(before, after, strict=True))
    grid = np.broadcast_arrays(rows[:, :, None, None], columns)
    n = len(front)
    constants: dict[str, Array] = {"at": np.stack(grid, -1), "zero": np.array(0, np.float32)}
    last = [n, n + 1, *range(n)]
    nodes = [node("Transpose", ["x"], ["t"], perm=last), node("GatherND", ["t", "at"], ["g"])]
    nodes.append(node("Transpose", ["g"], ["w"], perm=[*range(4, 4 + n), 0, 1, 2, 3]))
    name = "w"
    if (high == high[0]).all() and (wide == wide[0]).all():
        constants["axes"] = np.array([-3, -1])
        nodes.append(node("ReduceMean", [name, "axes"], ["y"], keepdims=0))
    else:
        masks = {"r": (high, rows.shape[1], (1, 1)), "c": (wide, columns.shape[1], ())}
        for what, (length, longest, behind) in masks.items():
            mask = np.arange(longest) >= length[:, None]
            constants[f"{what}m"] = mask.reshape(*mask.shape, *behind)
            nodes.append(node("Where", [f"{what}m", "zero", name], [f"{what}w"]))
            name = f"{what}w"
        name = _summed(nodes, constants, name, n, (rows.shape[1], columns.shape[1]))
        constants["count"] = (high[:, None] * wide).astype(np.float32)
        nodes.append(node("Div", [name, "count"], ["y"]))
    given, results = [value("x", [*front, *before])], [value("y", [*front, *after])]
    made = model(nodes, given, results, constants, opset=20)
    return made, {"x": noise(*front, *before)}


def _summed(nodes: list[NodeProto], constants: dict[str, Array], name: str, front: int, sizes: tuple[int, int]) -> str:
    total = ""
    constants |= {f"i{number}": np.array(number) for number in range(max(sizes))}
    for row in range(sizes[0]):
        nodes.append(node("Gather", [name, f"i{row}"], [f"s{row}"], axis=front + 1))
        for column in range(sizes[1]):
            here = f"s{row}_{column}"
            nodes.append(node("Gather", [f"s{row}", f"i{column}"], [here], axis=front + 2))
            if total:
                nodes.append(node("Add", [total, here], [f"a{row}_{column}"]))
            total = f"a{row}_{column}" if total else here
    return total


@settings(max_examples=8, deadline=None)
@given(
    before=st.tuples(st.integers(2, 9), st.integers(2, 9)),
    after=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    front=st.sampled_from([(1, 3), (2, 4), (5,)]),
)
def test_every_size(before: tuple[int, int], after: tuple[int, int], front: tuple[int, ...]) -> None:
    # What divides is exported as AveragePool.
    assume(any(size % wanted for size, wanted in zip(before, after, strict=True)))
    made, feeds = pooled(front, before, after)
    assert set(operators(assert_rewritten(made, feeds, "adaptive-average-pool"))) == {"MatMul", "Transpose"}


@pytest.mark.parametrize("what", ["count", "cm", "at"])
def test_something_else_stays(what: str) -> None:
    made, feeds = pooled((1, 3), (8, 9), (5, 7))
    for tensor in made.graph.initializer:
        if tensor.name == what:
            content = bytearray(tensor.raw_data)
            # One count is 16 times as large; one masked place is not masked; one window begins elsewhere.
            content[{"count": 3, "cm": 1, "at": 0}[what]] ^= {"count": 2, "cm": 1, "at": 1}[what]
            tensor.raw_data = bytes(content)
    assert_left(made, feeds, "adaptive-average-pool")
