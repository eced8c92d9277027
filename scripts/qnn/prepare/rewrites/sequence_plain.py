"""CumSum in its other forms, ReverseSequence of known lengths and EyeLike, by moving elements."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "sequence-plain"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("CumSum", "EyeLike", "ReverseSequence"):
        shape = view.shape(node.input[0])
        if shape is None or view.is_quantized(node):
            continue
        detail = {"CumSum": _cum_sum, "EyeLike": _eye, "ReverseSequence": _reverse}[node.op_type](view, node, shape)
        if detail:
            changes.append(applied(NAME, node, detail))
    return changes


def _cum_sum(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> str:
    """Reversed: of the elements in the other order, put back. Exclusive: of those behind a 0, without the last."""
    exclusive, reverse = attribute(node, "exclusive", 0), attribute(node, "reverse", 0)
    axis = view.scalar(node.input[1])
    if axis is None or not (exclusive or reverse):
        return ""
    at, made = int(axis) % len(shape), str(node.output[0])
    source = str(node.input[0])
    order = numpy.arange(shape[at] - 1, -1, -1, dtype=numpy.int64)
    backwards = view.add_constant(f"{made}_backwards", order)
    if reverse:
        source = view.add_node("Gather", [source, backwards], f"{made}_turned", axis=at)
    if exclusive:
        first = view.add_constant(f"{made}_first", numpy.arange(shape[at] - 1, dtype=numpy.int64))
        kept = view.add_node("Gather", [source, first], f"{made}_kept", axis=at)
        nothing = numpy.zeros([*shape[:at], 1, *shape[at + 1 :]], tensor_dtype_to_np_dtype(view.dtype(node.input[0])))
        zero = view.add_constant(f"{made}_zero", nothing)
        source = view.add_node("Concat", [zero, kept], f"{made}_shifted", axis=at) if shape[at] > 1 else zero
    if not reverse:
        view.replace(node, "CumSum", [source, node.input[1]])
        return "of the elements behind a 0"
    summed = view.add_node("CumSum", [source, node.input[1]], f"{made}_summed")
    view.replace(node, "Gather", [summed, backwards], axis=at)
    return "of the elements in the other order"


def _eye(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> str:
    dtype = tensor_dtype_to_np_dtype(view.dtype(node.output[0]))
    eye = numpy.eye(shape[0], shape[1], int(attribute(node, "k", 0)), dtype)
    view.replace(node, "Identity", [view.add_constant(f"{node.output[0]}_eye", eye)])
    return "a constant"


def _reverse(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> str:
    """Rows of [time · batch, …], in another order where they belong to a sequence."""
    lengths = view.constant(node.input[1])
    if lengths is None or view.dtype(node.input[0]) == TensorProto.STRING:
        return ""
    time_first = int(attribute(node, "time_axis", 0)) == 0
    steps, batch = (shape[0], shape[1]) if time_first else (shape[1], shape[0])
    place = numpy.arange(steps)[:, None]
    turned = numpy.where(place < lengths, lengths - 1 - place, place)
    column = numpy.arange(batch)[None, :]
    rows = turned * batch + column if time_first else (column * steps + turned).T
    made = str(node.output[0])
    flat = reshaped(view, str(node.input[0]), [steps * batch, *shape[2:]], f"{made}_rows")
    at = view.add_constant(f"{made}_order", rows.reshape(-1).astype(numpy.int64))
    moved = view.add_node("Gather", [flat, at], f"{made}_moved", axis=0)
    sizes = view.add_constant(f"{made}_shape", numpy.array(shape, numpy.int64))
    view.replace(node, "Reshape", [moved, sizes])
    return f"a Gather of {steps * batch} rows"


REWRITE = Rewrite(
    name=NAME,
    title="CumSum, ReverseSequence and EyeLike are written out",
    pattern="CumSum with exclusive or reverse, ReverseSequence of constant lengths, EyeLike",
    why="The compiler takes CumSum in its plain form alone, and has no form of the others. The same elements in the "
    "other order, or behind a 0, have the same sums; where an element of a sequence goes, and what a unit matrix "
    "holds, is known before.",
    default=True,
    apply=_apply,
)
