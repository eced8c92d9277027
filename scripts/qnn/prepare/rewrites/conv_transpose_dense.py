"""ConvTranspose in groups, quantized or over three axes, as one without groups."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import Array, GraphView, attribute
from qnn.prepare.rewrites.weights_by import changed_weights

NAME = "conv-transpose-dense"
_FLAT = 4


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("ConvTranspose"):
        groups = int(attribute(node, "group", 1))
        shape = view.shape(node.input[1])
        dequantize = view.maker(node.input[1], "DequantizeLinear")
        if groups > 1 and shape is not None and len(shape) > _FLAT and not view.is_quantized(node):
            changes.append(_dense_float(view, node, groups))
            continue
        if groups == 1 or shape is None or dequantize is None or not view.is_quantized(node):
            continue
        if shape[0] == groups and shape[1] == 1:
            continue
        weights = _dense(view, dequantize, groups, f"{node.output[0]}_dense")
        if weights is None:
            changes.append(refused(NAME, node, "its weights are quantized in blocks or along another axis than 1"))
            continue
        changes.append(_joined(view, node, weights, groups))
    return changes


def _joined(view: GraphView, node: NodeProto, weights: str, groups: int) -> Change:
    view.set_input(node, 1, weights)
    for written in list(node.attribute):
        if written.name == "group":
            node.attribute.remove(written)
    return applied(NAME, node, f"{groups} groups became a kernel with zeros between groups")


def _dense_float(view: GraphView, node: NodeProto, groups: int) -> Change:
    def spread(weights: Array) -> Array:
        return spread_groups(weights, numpy.zeros(1, weights.dtype), groups)

    weights = changed_weights(view, node.input[1], f"{node.output[0]}_dense", spread)
    if weights is None:
        return refused(NAME, node, "its weights are no constant in the model's file")
    return _joined(view, node, weights, groups)


def _dense(view: GraphView, dequantize: NodeProto, groups: int, wanted: str) -> str | None:
    stored, scale = view.constant(dequantize.input[0]), view.constant(dequantize.input[1])
    has_zero = len(dequantize.input) > 2 and dequantize.input[2]
    zero = view.constant(dequantize.input[2]) if has_zero else None
    axis = int(attribute(dequantize, "axis", 1))
    if stored is None or scale is None or attribute(dequantize, "block_size", 0) or (has_zero and zero is None):
        return None
    if scale.size > 1 and axis % stored.ndim != 1:
        return None
    points = numpy.zeros(scale.shape, stored.dtype) if zero is None else zero
    inputs = [view.add_constant(f"{wanted}_q", spread_groups(stored, points, groups))]
    inputs.append(view.add_constant(f"{wanted}_scale", _for_all(scale, groups)))
    inputs.append(view.add_constant(f"{wanted}_zero", _for_all(points, groups)))
    return view.add_node("DequantizeLinear", inputs, wanted, axis=1, domain=dequantize.domain)


def spread_groups(weights: Array, zero: Array, groups: int) -> Array:
    """[C, M, …] in `groups` groups as [C, groups · M, …] in one: the number 0 where a channel is in another group."""
    channels, own = weights.shape[:2]
    points = _for_all(zero, groups).reshape(-1)
    points = numpy.broadcast_to(points, (groups * own,))
    dense = numpy.empty((channels, groups * own, *weights.shape[2:]), weights.dtype)
    dense[...] = points.reshape(1, -1, *([1] * (weights.ndim - 2)))
    per_group = channels // groups
    for group in range(groups):
        rows = slice(group * per_group, (group + 1) * per_group)
        dense[rows, group * own : (group + 1) * own] = weights[rows]
    return dense


def _for_all(parameters: Array, groups: int) -> Array:
    """Per-channel parameters once for each group; a single one as it is."""
    return numpy.tile(parameters, groups) if parameters.size > 1 else parameters


REWRITE = Rewrite(
    name=NAME,
    title="ConvTranspose loses its groups",
    pattern="ConvTranspose between Q/DQ nodes in groups, other than one channel a group; in groups over three axes",
    why="The compiler fails on the first without naming a node (QNN_COMMON_ERROR_MEM_ALLOC), and answers "
    "wrongly to the second (cosine 0.25). A kernel that holds the"
    " number 0 wherever input and output channel are of different groups gives the same sums, from the "
    "same integers.",
    default=True,
    apply=_apply,
)
