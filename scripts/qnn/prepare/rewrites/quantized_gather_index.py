"""Negative indices of a quantized Gather that are known only at run time."""

from __future__ import annotations

from onnx import ModelProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite
from qnn.prepare.rewrites.computed_index import from_front
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
        changes.append(from_front(view, node, shape[int(attribute(node, "axis", 0))], NAME))
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
