"""ReduceL2 of numbers whose squares fp16 cannot hold."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.reduction import axes_arguments, axes_of
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "reduce-l2-range"
# The smallest normal number of fp16: rows below it are not made larger by a division.
_LEAST = 2.0**-14
# A floor this low is there to avoid 0 / 0, which LpNormalization answers with 0 by itself.
_TINY = 1e-6


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("ReduceL2"):
        axes = axes_of(view, node)
        if not axes or view.is_quantized(node) or view.dtype(node.input[0]) != TensorProto.FLOAT:
            continue
        divisions = _normalisations(view, node) if len(axes) == 1 else []
        for division in divisions:
            view.replace(division, "LpNormalization", [str(node.input[0])], axis=axes[0], p=2)
            changes.append(applied(NAME, division, "x / max(‖x‖, tiny) became LpNormalization"))
        if divisions and not _still_used(view, node):
            continue
        _around_largest(view, node, axes)
        changes.append(applied(NAME, node, "of x divided by its largest magnitude"))
    return changes


def _still_used(view: GraphView, node: NodeProto) -> bool:
    """Whether anything but a floor that nothing reads any more reads the norm."""
    readers = view.users(node.output[0])
    return view.is_output(node.output[0]) or any(
        any(view.users(name) or view.is_output(name) for name in reader.output) for reader in readers
    )


def _normalisations(view: GraphView, node: NodeProto) -> list[NodeProto]:
    """Divs of x by its own norm, floored by a tiny constant or not, expanded or not."""
    if not attribute(node, "keepdims", 1):
        return []
    names, found = [str(node.output[0])], []
    while names:
        name = names.pop()
        for user in view.users(name):
            if user.op_type == "Div" and user.input[1] == name and user.input[0] == node.input[0]:
                found.append(user)
            elif user.op_type == "Expand" or (user.op_type in ("Max", "Clip") and _floors(view, user, name)):
                names.append(str(user.output[0]))
    return found


def _floors(view: GraphView, node: NodeProto, name: str) -> bool:
    if node.op_type == "Max":
        other = view.other_input(node, name)
        floor = None if other is None else view.scalar(other)
        return floor is not None and floor <= _TINY
    floor = attribute(node, "min")
    if len(node.input) > 1 and node.input[1]:
        floor = view.scalar(node.input[1])
    open_above = attribute(node, "max", 3.5e38) > 1e30 and (len(node.input) < 3 or not node.input[2])
    return floor is not None and floor <= _TINY and open_above


def _around_largest(view: GraphView, node: NodeProto, axes: tuple[int, ...]) -> None:
    """most · ‖x / most‖, most the largest magnitude."""
    source, wanted = str(node.input[0]), str(node.output[0])
    further, attributes = axes_arguments(view, axes)
    keep = int(attribute(node, "keepdims", 1))
    magnitude = view.add_node("Abs", [source], f"{wanted}_magnitude")
    most = view.add_node("ReduceMax", [magnitude, *further], f"{wanted}_most", keepdims=1, **attributes)
    floor = view.add_constant(f"{wanted}_least", numpy.array(_LEAST, numpy.float32))
    most = view.add_node("Max", [most, floor], f"{wanted}_scale")
    scaled = view.add_node("Div", [source, most], f"{wanted}_scaled")
    norm = view.add_node("ReduceL2", [scaled, *further], f"{wanted}_norm", keepdims=1, **attributes)
    if keep:
        view.replace(node, "Mul", [norm, most])
        return
    result = view.add_node("Mul", [norm, most], f"{wanted}_kept")
    shape = view.shape(wanted) or ()
    view.replace(node, "Reshape", [result, view.add_constant(f"{wanted}_shape", numpy.array(shape, numpy.int64))])


REWRITE = Rewrite(
    name=NAME,
    title="The norm of a vector keeps to fp16's range",
    pattern="ReduceL2; a division of x by its own norm, floored by at most 1e-6",
    why="The sum of squares leaves fp16 at 65,504 (a norm of 256) and vanishes below a norm of 2e-4. Divided "
    "by its largest magnitude a vector has neither; x over its own norm is the operator LpNormalization, "
    "right for every magnitude.",
    default=True,
    apply=_apply,
)
