"""Negative positions that are known only at run time, counted from the front."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "computed-index"
# From here on Less takes integers, and Where exists.
_LESS_OF_INTEGERS = 9


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes: list[Change] = []
    if view.opset() < _LESS_OF_INTEGERS:
        return changes
    for node in view.nodes("Gather", "GatherElements", "ScatterElements", "ScatterND"):
        shape, places = view.shape(node.input[0]), view.shape(node.input[1])
        indices = str(node.input[1])
        if shape is None or places is None or view.is_constant(indices) or interval(view, indices)[0] >= 0:
            continue
        if node.op_type == "ScatterND":
            changes.append(_coordinates_from_front(view, node, shape[: places[-1]]))
        elif node.op_type != "Gather" or not view.is_quantized(node):  # quantized-gather-index is for those
            changes.append(from_front(view, node, shape[int(attribute(node, "axis", 0))], NAME))
    return changes


def _coordinates_from_front(view: GraphView, node: NodeProto, sizes: Sequence[int]) -> Change:
    """The same for coordinates, each along an axis of its own; ScatterND takes int64 only."""
    indices = str(node.input[1])
    wanted = f"{node.output[0]}_index"
    narrow = view.add_node("Cast", [indices], f"{wanted}_int32", to=TensorProto.INT32)
    index = _counted(view, narrow, numpy.array(sizes, numpy.int32), wanted)
    view.set_input(node, 1, view.add_node("Cast", [index], f"{wanted}_int64", to=TensorProto.INT64))
    return applied(NAME, node, f"{list(sizes)} added to negative coordinates")


def from_front(view: GraphView, node: NodeProto, size: int, rewrite: str) -> Change:
    """Add the length of the axis to the negative indices of a node, in int32."""
    indices = str(node.input[1])
    wanted = f"{node.output[0]}_index"
    if view.dtype(indices) != TensorProto.INT32:
        indices = view.add_node("Cast", [indices], f"{wanted}_int32", to=TensorProto.INT32)
    view.set_input(node, 1, _counted(view, indices, numpy.array(size, numpy.int32), wanted))
    return applied(rewrite, node, f"{size} added to negative indices")


def _counted(view: GraphView, indices: str, sizes: Array, wanted: str) -> str:
    zero = view.add_constant(f"{wanted}_zero", numpy.zeros((), numpy.int32))
    length = view.add_constant(f"{wanted}_size", sizes)
    negative = view.add_node("Less", [indices, zero], f"{wanted}_negative")
    from_end = view.add_node("Add", [indices, length], f"{wanted}_from_end")
    return view.add_node("Where", [negative, from_end, indices], wanted)


REWRITE = Rewrite(
    name=NAME,
    title="Computed positions count from the front",
    pattern="Gather, GatherElements, ScatterElements and ScatterND by positions that are computed or an input and may "
    "be negative",
    why="HTP knows negative positions of constants only: a Gather of integers and a GatherElements answer 0 there, a "
    "Gather of booleans another element, a scatter leaves the place as it was, and a Gather of floats by int32 or "
    "behind a Conv fails when it runs. The axis' length is added to negative positions before.",
    default=True,
    apply=_apply,
)
