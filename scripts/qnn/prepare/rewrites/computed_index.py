"""Negative positions that are known only at run time, counted from the front."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "computed-index"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Gather", "GatherElements", "ScatterElements"):
        shape = view.shape(node.input[0])
        indices = str(node.input[1])
        if shape is None or view.is_constant(indices) or interval(view, indices)[0] >= 0 or _is_right(view, node):
            continue
        changes.append(from_front(view, node, shape[int(attribute(node, "axis", 0))], NAME))
    return changes


def _is_right(view: GraphView, node: NodeProto) -> bool:
    """Rows of a constant table of floats (an embedding), where a negative index is right; a quantized Gather is left to
    the rewrite for those.
    """
    if node.op_type != "Gather":
        return False
    return view.is_quantized(node) or (view.is_constant(node.input[0]) and view.is_float(node.input[0]))


def from_front(view: GraphView, node: NodeProto, size: int, rewrite: str) -> Change:
    """Add the length of the axis to the negative indices of a node, in int32."""
    indices = str(node.input[1])
    wanted = f"{node.output[0]}_index"
    if view.dtype(indices) != TensorProto.INT32:
        indices = view.add_node("Cast", [indices], f"{wanted}_int32", to=TensorProto.INT32)
    zero = view.add_constant(f"{wanted}_zero", numpy.zeros((), numpy.int32))
    length = view.add_constant(f"{wanted}_size", numpy.array(size, numpy.int32))
    negative = view.add_node("Less", [indices, zero], f"{wanted}_negative")
    from_end = view.add_node("Add", [indices, length], f"{wanted}_from_end")
    view.set_input(node, 1, view.add_node("Where", [negative, from_end, indices], wanted))
    return applied(rewrite, node, f"{size} added to negative indices")


REWRITE = Rewrite(
    name=NAME,
    title="Computed positions count from the front",
    pattern="Gather, GatherElements and ScatterElements by positions that are computed or an input and may be "
    "negative, other than a Gather from a constant table of floats",
    why="HTP knows negative positions of constants only: a Gather of integers and a GatherElements answer 0 there, a "
    "Gather of booleans another element, a ScatterElements leaves the place as it was, and a Gather behind a Conv "
    "fails when it runs. The axis' length is added to negative positions before.",
    default=True,
    apply=_apply,
)
