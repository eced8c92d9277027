"""MaxPool with ceil_mode as one with end pads, and MaxPool over three axes as two over two and one."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
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
        deep = len(found.sizes) == _THREE
        if not deep and not attribute(node, "ceil_mode", 0):
            continue
        reach = [(size - 1) * step + 1 for size, step in zip(found.kernel, found.dilations, strict=True)]
        if len(node.output) > 1 and node.output[1]:
            changes.append(refused(NAME, node, "its second output, the positions, is used"))
        elif any(end >= size for end, size in zip(found.ends, reach, strict=True)):
            changes.append(refused(NAME, node, "a window lies in the padding alone"))
        elif deep:
            _over_two_and_one(view, node, found, shape)
            changes.append(applied(NAME, node, "two poolings, over the last two axes and over the first"))
        else:
            view.replace(node, "MaxPool", [node.input[0]], **_attributes(found, range(len(found.sizes))))
            changes.append(applied(NAME, node, f"pads {[*found.begins, *found.ends]} in place of ceil_mode"))
    return changes


def _over_two_and_one(view: GraphView, node: NodeProto, found: Windows, shape: tuple[int, ...]) -> None:
    batch, channels, depth = shape[:3]
    name, counts = str(node.output[0]), found.counts
    quantized = view.maker(node.input[0], "DequantizeLinear")

    def step(tensor: str) -> str:
        return requantized(view, tensor, quantized)

    merged = step(reshaped(view, node.input[0], [batch, channels * depth, *shape[3:]], f"{name}_merged"))
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
    title="MaxPool loses ceil_mode and its third axis",
    pattern="MaxPool with ceil_mode, or over three axes",
    why="Over three axes the compiler refuses MaxPool, and with ceil_mode it fails for some sizes. End pads "
    "make the same windows, and the largest of a block is the largest of its planes' largest.",
    default=True,
    apply=_apply,
)
