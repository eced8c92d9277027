"""OneHot as a comparison with the positions."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "one-hot"
_INTEGERS = frozenset({TensorProto.INT32, TensorProto.INT64})


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("OneHot"):
        depth, values = view.scalar(node.input[1]), view.constant(node.input[2])
        shape = view.shape(node.input[0])
        if depth is None or values is None or shape is None or view.dtype(node.input[0]) not in _INTEGERS:
            continue
        if interval(view, str(node.input[0]))[0] >= 0 and values.dtype.kind == "f":
            continue
        _replace(view, node, int(depth), values, shape)
        changes.append(applied(NAME, node, f"compared with 0 to {int(depth) - 1}"))
    return changes


def _replace(view: GraphView, node: NodeProto, depth: int, values: Array, shape: tuple[int, ...]) -> None:
    made = str(node.output[0])
    index = str(node.input[0])
    if view.dtype(index) != TensorProto.INT32:
        index = view.add_node("Cast", [index], f"{made}_int32", to=TensorProto.INT32)
    if interval(view, str(node.input[0]))[0] < 0:
        zero = view.add_constant(f"{made}_zero", numpy.zeros((), numpy.int32))
        length = view.add_constant(f"{made}_depth", numpy.array(depth, numpy.int32))
        negative = view.add_node("Less", [index, zero], f"{made}_negative")
        from_end = view.add_node("Add", [index, length], f"{made}_from_end")
        index = view.add_node("Where", [negative, from_end, index], f"{made}_index")
    axis = int(attribute(node, "axis", -1)) % (len(shape) + 1)
    column = reshaped(view, index, [*shape[:axis], 1, *shape[axis:]], f"{made}_column")
    places = numpy.arange(depth, dtype=numpy.int32).reshape([depth] + [1] * (len(shape) - axis))
    hot = view.add_node("Equal", [column, view.add_constant(f"{made}_places", places)], f"{made}_hot")
    off, on = (view.add_constant(f"{made}_{word}", values[at].reshape(())) for word, at in (("off", 0), ("on", 1)))
    view.replace(node, "Where", [hot, on, off])


REWRITE = Rewrite(
    name=NAME,
    title="OneHot becomes a comparison",
    pattern="OneHot of int32 or int64 that may be negative, or with integers as its values",
    why="The compiler's OneHot leaves out positions that count from the end, and has none of integers. Which element "
    "is hot is where the position equals the element's number.",
    default=True,
    apply=_apply,
)
