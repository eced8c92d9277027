"""Negative indices of a quantized Gather that are known only at run time."""

from __future__ import annotations

import numpy
from onnx import ModelProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "quantized-gather-index"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Gather"):
        table, indices = str(node.input[0]), str(node.input[1])
        shape = view.shape(table)
        if shape is None or view.is_constant(indices) or not view.is_quantized(node):
            continue
        wanted = f"{node.output[0]}_index"
        if view.dtype(indices) != TensorProto.INT32:
            indices = view.add_node("Cast", [indices], f"{wanted}_int32", to=TensorProto.INT32)
        size = shape[int(attribute(node, "axis", 0))]
        zero = view.add_constant(f"{wanted}_zero", numpy.zeros((), numpy.int32))
        length = view.add_constant(f"{wanted}_size", numpy.array(size, numpy.int32))
        negative = view.add_node("Less", [indices, zero], f"{wanted}_negative")
        from_end = view.add_node("Add", [indices, length], f"{wanted}_from_end")
        index = view.add_node("Where", [negative, from_end, indices], wanted)
        view.set_input(node, 1, index)
        changes.append(applied(NAME, node, f"{size} added to negative indices"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="A quantized Gather gets no negative index",
    pattern="Gather of a dequantized tensor by indices that are computed or an input",
    why="In fp16 a negative index counts from the end; quantized, the compiler takes another row for it. The "
    "axis' size is added to negative indices before.",
    default=True,
    apply=_apply,
)
