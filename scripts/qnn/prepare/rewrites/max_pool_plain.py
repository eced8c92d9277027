"""MaxPool without ceil_mode, without padding that the compiler gets wrong, and over two axes at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.pad_by_gather import padded_positions
from qnn.prepare.rewrites.pool_windows import Windows, windows
from qnn.prepare.rewrites.steps import requantized, reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "max-pool-plain"
_THREE = 3


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("MaxPool"):
        found = windows(view, node)
        shape = view.shape(node.input[0])
        if found is None or shape is None:
            continue
        if _has_idle_positions(view, node):
            del node.output[1:]
            changes.append(applied(NAME, node, "its second output, which nothing reads, is left out"))
        dilated = set(found.dilations) != {1} and view.is_float(node.input[0]) and not view.is_quantized(node)
        deep = len(found.sizes) == _THREE
        if not deep and not dilated and not attribute(node, "ceil_mode", 0) and not _is_wrong(found):
            continue
        changes.append(_mended(view, node, found, shape, dilated=dilated))
    return changes


def _has_idle_positions(view: GraphView, node: NodeProto) -> bool:
    name = node.output[1] if len(node.output) > 1 else ""
    return bool(name) and not view.users(name) and not view.is_output(name)


def _mended(view: GraphView, node: NodeProto, found: Windows, shape: tuple[int, ...], *, dilated: bool) -> Change:
    pads = [*found.begins, *found.ends]
    reach = [(size - 1) * step + 1 for size, step in zip(found.kernel, found.dilations, strict=True)]
    if len(node.output) > 1 and node.output[1]:
        return refused(NAME, node, "its second output, the positions, is used")
    if any(end >= size for end, size in zip(found.ends, reach, strict=True)):
        return refused(NAME, node, "a window lies in the padding alone")
    if dilated:
        _by_taps(view, node, found, shape)
        return applied(NAME, node, f"dilations {list(found.dilations)} became Gathers and Max")
    if len(found.sizes) == _THREE:
        _over_two_and_one(view, node, found, shape)
        return applied(NAME, node, "two poolings, over the last two axes and over the first")
    axes = range(len(found.sizes))
    if _is_wrong(found):
        source = _with_edges(view, node, str(node.input[0]), found, axes, 2)
        view.replace(node, "MaxPool", [source], **_attributes(_unpadded(found), axes))
        return applied(NAME, node, f"pads {pads} became copies of the edge")
    view.replace(node, "MaxPool", [node.input[0]], **_attributes(found, axes))
    return applied(NAME, node, f"pads {pads} in place of ceil_mode")


def _by_taps(view: GraphView, node: NodeProto, found: Windows, shape: tuple[int, ...]) -> None:
    """Axis by axis the largest of the elements of each window: one Gather an element, and Max.

    An element beyond the border is another one of the same window, which changes no maximum.
    """
    source, name = str(node.input[0]), str(node.output[0])
    sizes = list(shape)
    for axis, size in enumerate(found.sizes):
        flat = [prod(sizes[:2]), prod(sizes[2 : axis + 2]), size, prod(sizes[axis + 3 :])]
        source = reshaped(view, source, flat, f"{name}_flat_{axis}")
        sizes[axis + 2] = found.counts[axis]
        starts = numpy.arange(found.counts[axis]) * found.strides[axis] - found.begins[axis]
        at = starts[:, None] + numpy.arange(found.kernel[axis])[None, :] * found.dilations[axis]
        inside = (at >= 0) & (at < size)
        at = numpy.where(inside, at, numpy.take_along_axis(at, inside.argmax(axis=1)[:, None], axis=1))
        taps = []
        for tap in range(found.kernel[axis]):
            indices = view.add_constant(f"{name}_at_{axis}_{tap}", numpy.ascontiguousarray(at[:, tap], numpy.int64))
            taps.append(view.add_node("Gather", [source, indices], f"{name}_tap_{axis}_{tap}", axis=2))
        source = taps[0]
        for number, other in enumerate(taps[1:]):  # Max of two: the compiler takes no other number
            source = view.add_node("Max", [source, other], f"{name}_max_{axis}_{number}")
    view.replace(node, "Reshape", [source, view.add_constant(f"{name}_shape", numpy.array(sizes, numpy.int64))])


def _is_wrong(found: Windows) -> bool:
    """An even window of two axes (the third of three is pooled with them) that begins before the input."""
    axes = range(len(found.sizes))
    even = any(found.kernel[axis] % 2 == 0 and found.begins[axis] for axis in axes)
    return len(found.sizes) > 1 and even and set(found.dilations) == {1}


def _unpadded(found: Windows) -> Windows:
    none = (0,) * len(found.sizes)
    return replace(found, begins=none, ends=none, stated_ends=none)


def _with_edges(view: GraphView, node: NodeProto, name: str, found: Windows, axes: Sequence[int], first: int) -> str:
    """The tensor with its edge repeated in place of padding: a window that reaches beyond the edge holds the edge.

    `first` is the tensor's axis of the first of `axes`.
    """
    quantized = view.maker(node.input[0], "DequantizeLinear")
    for place, axis in enumerate(axes):
        if found.begins[axis] or found.ends[axis]:
            at = padded_positions("edge", found.sizes[axis], found.begins[axis], found.ends[axis])
            indices = view.add_constant(f"{node.output[0]}_edge_{axis}", at)
            name = view.add_node("Gather", [name, indices], f"{node.output[0]}_edged_{axis}", axis=first + place)
            name = requantized(view, name, quantized)
    return name


def _over_two_and_one(view: GraphView, node: NodeProto, found: Windows, shape: tuple[int, ...]) -> None:
    batch, channels, depth = shape[:3]
    name, counts = str(node.output[0]), found.counts
    quantized = view.maker(node.input[0], "DequantizeLinear")
    source = str(node.input[0])
    if _is_wrong(found):
        source = _with_edges(view, node, source, found, range(3), 2)
        shape = (*shape[:2], *(b + n + e for b, n, e in zip(found.begins, found.sizes, found.ends, strict=True)))
        depth, found = shape[2], _unpadded(found)

    def step(tensor: str) -> str:
        return requantized(view, tensor, quantized)

    merged = step(reshaped(view, source, [batch, channels * depth, *shape[3:]], f"{name}_merged"))
    planes = step(view.add_node("MaxPool", [merged], f"{name}_planes", **_attributes(found, (1, 2))))
    turned = step(reshaped(view, planes, [batch, channels, depth, prod(counts[1:])], f"{name}_turned"))
    attributes = _attributes(found, (0,))
    pads = attributes["pads"]
    wide = {
        "kernel_shape": [*attributes["kernel_shape"], 1],
        "strides": [*attributes["strides"], 1],
        "pads": [pads[0], 0, pads[1], 0],
    }
    if "dilations" in attributes:
        wide["dilations"] = [*attributes["dilations"], 1]
    pooled = step(view.add_node("MaxPool", [turned], f"{name}_pooled", **wide))
    sizes = view.add_constant(f"{name}_shape", numpy.array([batch, channels, *counts], numpy.int64))
    view.replace(node, "Reshape", [pooled, sizes])


def _attributes(found: Windows, axes: range | tuple[int, ...]) -> dict[str, list[int]]:
    stated = {
        "kernel_shape": [found.kernel[axis] for axis in axes],
        "strides": [found.strides[axis] for axis in axes],
        "pads": [*(found.begins[axis] for axis in axes), *(found.ends[axis] for axis in axes)],
    }
    if any(found.dilations[axis] != 1 for axis in axes):
        stated["dilations"] = [found.dilations[axis] for axis in axes]
    return stated


REWRITE = Rewrite(
    name=NAME,
    title="MaxPool loses ceil_mode, its third axis, and padding before even windows",
    pattern="MaxPool with ceil_mode, over three axes, or over two axes with an even window and padding before it, or "
    "with dilations",
    why="Over three axes and with dilations the compiler refuses MaxPool, with ceil_mode it fails for some sizes, and "
    "even windows that begin before the input are wrong at some sizes. End pads make the same windows; the "
    "largest of a block is the largest of its planes' largest; and where the edge is repeated in place of"
    " padding, every window has the same largest element.",
    default=True,
    apply=_apply,
)
