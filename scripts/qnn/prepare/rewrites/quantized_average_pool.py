"""Quantized AveragePool with padding or ceil_mode in forms that the compiler gets right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.pool_windows import Windows, windows
from qnn.prepare.rewrites.steps import requantized
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "quantized-average-pool"
_MOST_PIECES = 27
_SMALL_KERNEL = 3


@dataclass(frozen=True)
class Run:
    """Windows of one axis that are pooled together: `size` elements each, `stride` apart, over [begin, end)."""

    begin: int
    end: int
    size: int
    stride: int


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("AveragePool"):
        found = windows(view, node)
        if found is None or not view.is_quantized(node) or is_right(node, found):
            continue
        detail = _rewritten(view, node, found)
        if detail is None:
            changes.append(refused(NAME, node, f"no other form of it is known: {_fault(node, found)}"))
        else:
            changes.append(applied(NAME, node, detail))
    return changes


def is_right(node: NodeProto, found: Windows) -> bool:
    """Whether the compiler computes this quantized form as it is."""
    if attribute(node, "ceil_mode", 0):
        return False
    if not found.is_padded:
        return True
    if attribute(node, "count_include_pad", 0):
        return set(found.dilations) == {1} and max(found.strides) < min(found.kernel)
    return _is_right_uncounted(found, found.stated_ends)


def runs(found: Windows, axis: int) -> list[Run] | None:
    """The windows of an axis cut to the input, those that lie in it whole in one run; None where one is empty."""
    size, stride, length = found.kernel[axis], found.strides[axis], found.sizes[axis]
    made: list[Run] = []
    whole = False
    for index in range(found.counts[axis]):
        start = index * stride - found.begins[axis]
        begin, end = max(0, start), min(length, start + size)
        if begin >= end:
            return None
        if end - begin == size and whole:
            made[-1] = Run(made[-1].begin, end, size, stride)
        else:
            made.append(Run(begin, end, end - begin, stride if end - begin == size else 1))
        whole = end - begin == size
    return made


def _is_right_uncounted(found: Windows, ends: Sequence[int]) -> bool:
    """Of padding that does not count, the same on every axis: windows of 2; of 3 with one element on each side, or with
    padding behind only; odd ones at stride 1 that keep the length.
    """
    forms = set(zip(found.kernel, found.begins, ends, found.dilations, strict=True))
    if len(forms) > 1:
        return False
    [(size, begin, end, dilation)] = forms
    if dilation > 1 or max(begin, end) >= size:
        return False
    kept = size % 2 == 1 and begin == end == size // 2 and (size == _SMALL_KERNEL or set(found.strides) == {1})
    return size < _SMALL_KERNEL or kept or (size == _SMALL_KERNEL and begin == 0)


def _fault(node: NodeProto, found: Windows) -> str:
    if set(found.dilations) != {1}:
        return "it is dilated"
    if attribute(node, "count_include_pad", 0):
        return "its last window counts a part of the padding"
    return "its border has too many kinds of windows"


def _rewritten(view: GraphView, node: NodeProto, found: Windows) -> str | None:
    """Put another form in the node's place and say which; None where there is none."""
    pads = [*found.begins, *found.ends]
    # What ceil_mode adds behind the stated padding counts never.
    counts = bool(attribute(node, "count_include_pad", 0)) and (any(found.begins) or any(found.stated_ends))
    if set(found.dilations) != {1}:
        return None
    if not counts and _is_right_uncounted(found, found.ends):
        written = {"kernel_shape": list(found.kernel), "strides": list(found.strides)}
        view.replace(node, "AveragePool", [node.input[0]], **(written | ({"pads": pads} if any(pads) else {})))
        return f"pads {pads} in place of ceil_mode" if any(pads) else "ceil_mode removed: it changes nothing here"
    if counts:
        if any(end > stated for end, stated in zip(found.ends, found.stated_ends, strict=True)):
            return None
        _as_conv(view, node, found, pads)
        return f"a depthwise Conv of equal shares with pads {pads}"
    pieces = [runs(found, axis) for axis in range(len(found.sizes))]
    known = [run for run in pieces if run is not None]
    if len(known) < len(pieces) or prod(len(run) for run in known) > _MOST_PIECES:
        return None
    _in_pieces(view, node, known)
    return f"pooled in {prod(len(run) for run in known)} pieces without padding"


def _as_conv(view: GraphView, node: NodeProto, found: Windows, pads: Sequence[int]) -> None:
    """A depthwise Conv whose weights are all the integer 1 of scale 1 / K, which is exact, over zeros at the border."""
    name, channels = str(node.output[0]), (view.shape(node.input[0]) or (0, 0))[1]
    ones = view.add_constant(f"{name}_ones", numpy.ones((channels, 1, *found.kernel), numpy.int8))
    scale = view.add_constant(f"{name}_share", numpy.array(1.0 / prod(found.kernel), numpy.float32))
    zero = view.add_constant(f"{name}_zero", numpy.zeros((), numpy.int8))
    weights = view.add_node("DequantizeLinear", [ones, scale, zero], f"{name}_shares")
    attributes: dict[str, Any] = {"group": channels, "pads": list(pads), "strides": list(found.strides)}
    view.replace(node, "Conv", [node.input[0], weights], kernel_shape=list(found.kernel), **attributes)


def _in_pieces(view: GraphView, node: NodeProto, pieces: list[list[Run]]) -> None:
    """Slices of the input, pooled without padding, side by side; nothing is rounded but by the pooling itself."""
    of_result = next((user for user in view.users(node.output[0]) if user.op_type == "QuantizeLinear"), None)
    split = [axis for axis, own in enumerate(pieces) if len(own) > 1]
    if not split:
        source, written = _piece(view, node, pieces, (0,) * len(pieces))
        view.replace(node, "AveragePool", [source], **written)
        return
    parts: dict[tuple[int, ...], str] = {}
    for place in product(*(range(len(own)) for own in pieces)):
        source, written = _piece(view, node, pieces, place)
        parts[place] = view.add_node("AveragePool", [source], f"{node.output[0]}_piece", **written)
    for axis in reversed(split):
        rows: dict[tuple[int, ...], list[str]] = {}
        for place, name in sorted(parts.items()):
            row = (*place[:axis], 0, *place[axis + 1 :])
            rows.setdefault(row, []).append(requantized(view, name, of_result))
        if axis == split[0]:
            [last] = rows.values()
            view.replace(node, "Concat", last, axis=2 + axis)
            return
        parts = {
            row: view.add_node("Concat", names, f"{node.output[0]}_row", axis=2 + axis) for row, names in rows.items()
        }


def _piece(
    view: GraphView, node: NodeProto, pieces: list[list[Run]], place: tuple[int, ...]
) -> tuple[str, dict[str, Any]]:
    """(the part of the input for some windows, the attributes of pooling it)."""
    own = [axis[index] for axis, index in zip(pieces, place, strict=True)]
    sizes = (view.shape(node.input[0]) or ())[2:]
    cut = [
        (run.begin, run.end, 2 + axis)
        for axis, (run, size) in enumerate(zip(own, sizes, strict=True))
        if (run.begin, run.end) != (0, size)
    ]
    source = str(node.input[0])
    if cut:
        wanted = f"{node.output[0]}_part"
        given = [
            view.add_constant(f"{wanted}_{word}", numpy.array(values, numpy.int64))
            for word, values in zip(("starts", "ends", "axes"), zip(*cut, strict=True), strict=True)
        ]
        source = requantized(
            view, view.add_node("Slice", [source, *given], wanted), view.maker(node.input[0], "DequantizeLinear")
        )
    return source, {"kernel_shape": [run.size for run in own], "strides": [run.stride for run in own]}


REWRITE = Rewrite(
    name=NAME,
    title="A quantized AveragePool loses its padding",
    pattern="AveragePool between Q/DQ nodes with ceil_mode or padding, other than (the same on each axis) windows of "
    "2, windows of 3 with one element on each side or padding behind only, odd ones that keep the length at stride 1, "
    "and padding that counts at strides below the window",
    why="The compiler divides by the wrong number of elements at the border or takes others (20 to 100 % of full scale "
    "in 74 of 226 forms). Padding that counts is a depthwise Conv of the integer 1 with the scale 1 / K. Where it does "
    "not count, the windows at the border are pooled apart, from slices, with the smaller windows that they are: the "
    "same means, rounded once.",
    default=True,
    apply=_apply,
)
