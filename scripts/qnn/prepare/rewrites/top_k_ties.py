"""TopK that takes equal values in the order of ONNX."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import requantized
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "top-k-ties"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("TopK"):
        shape = view.shape(node.input[0])
        used = len(node.output) > 1 and (view.users(node.output[1]) or view.is_output(node.output[1]))
        if shape is None or not used:
            continue
        _replace(view, node, shape)
        changes.append(applied(NAME, node, "of the reversed axis, positions counted back"))
    return changes


def _replace(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> None:
    axis = int(attribute(node, "axis", -1))
    size = shape[axis]
    values, positions = (str(name) for name in node.output)
    quantized = view.maker(node.input[0], "DequantizeLinear")
    reverse = view.add_constant(f"{positions}_reverse", numpy.arange(size - 1, -1, -1, dtype=numpy.int64))
    reversed_input = view.add_node("Gather", [node.input[0], reverse], f"{positions}_reversed", axis=axis % len(shape))
    reversed_input = requantized(view, reversed_input, quantized)
    last = view.add_constant(f"{positions}_last", numpy.array(size - 1, numpy.int64))
    name, inputs = str(node.name), [reversed_input, *node.input[1:]]
    written = {a: attribute(node, a) for a in ("axis", "k", "largest", "sorted") if attribute(node, a) is not None}
    view.remove(node)
    back = view.fresh(f"{positions}_back")
    view.put("TopK", inputs, [values, back], name, **written)
    view.put("Sub", [last, back], [positions], f"{name}_positions")


REWRITE = Rewrite(
    name=NAME,
    title="TopK takes the first of equal values",
    pattern="TopK whose positions are used",
    why="Of equal values ONNX takes those with the lowest position first, the compiler those with the "
    "highest. On the reversed axis the highest is the lowest; the positions are counted back. (Values "
    "that only fp16 makes equal may still change places.)",
    default=True,
    apply=_apply,
)
