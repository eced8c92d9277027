"""Norms written as a root of summed squares become ReduceL2, which other rewrites keep in fp16's range."""

from __future__ import annotations

from math import prod, sqrt

from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.centred_variance import squared
from qnn.prepare.rewrites.reduction import axes_arguments, axes_of
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "norm-written-out"
_FP16_MAX = 65504.0


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Sqrt", "Pow"):
        if view.is_quantized(node) or view.dtype(node.input[0]) != TensorProto.FLOAT:
            continue
        if node.op_type == "Pow" and view.scalar(node.input[1]) != 0.5:
            continue
        inner, floor = _without_floor(view, str(node.input[0]))
        inner, share = _without_factor(view, inner)
        total = view.maker(inner, "ReduceSum", "ReduceMean")
        x = None if total is None else squared(view, str(total.input[0]))
        axes = None if total is None else axes_of(view, total)
        shape = None if x is None else view.shape(x)
        if total is None or x is None or not axes or shape is None or floor < 0 or share <= 0:
            continue
        terms = prod(shape[axis] for axis in axes)
        if max(abs(bound) for bound in interval(view, x)) ** 2 * terms <= _FP16_MAX:
            continue
        share /= terms if total.op_type == "ReduceMean" else 1
        root = _replace(view, node, total, x, axes, floor, share)
        _divide(view, root, x)
        changes.append(applied(NAME, node, "√Σx² became ReduceL2"))
    return changes


def _without_floor(view: GraphView, name: str) -> tuple[str, float]:
    """(the tensor under a Max or Clip with a constant floor, the floor); itself and 0 without one."""
    node = view.maker(name, "Max", "Clip")
    if node is None:
        return name, 0.0
    if node.op_type == "Max" and len(node.input) == 2:
        for place in (0, 1):
            floor = view.scalar(node.input[place])
            if floor is not None:
                return str(node.input[1 - place]), floor
        return name, 0.0
    least = attribute(node, "min")
    if len(node.input) > 1 and node.input[1]:
        least = view.scalar(node.input[1])
    bounded = attribute(node, "max") is not None or (len(node.input) > 2 and bool(node.input[2]))
    return (name, 0.0) if least is None or bounded or node.op_type == "Max" else (str(node.input[0]), float(least))


def _without_factor(view: GraphView, name: str) -> tuple[str, float]:
    """(the tensor that is multiplied or divided by a constant, the factor); itself and 1 without one."""
    node = view.maker(name, "Mul", "Div")
    for place in (0, 1) if node is not None and node.op_type == "Mul" else (1,):
        factor = None if node is None else view.scalar(node.input[place])
        if node is not None and factor:
            return str(node.input[1 - place]), factor if node.op_type == "Mul" else 1 / factor
    return name, 1.0


def _replace(
    view: GraphView, node: NodeProto, total: NodeProto, x: str, axes: tuple[int, ...], floor: float, share: float
) -> NodeProto:
    made = str(node.output[0])
    further, attributes = axes_arguments(view, axes)
    steps = [("ReduceL2", [x, *further], {"keepdims": int(attribute(total, "keepdims", 1)), **attributes})]
    if share != 1:
        steps.append(("Mul", [view.add_scalar_like(f"{made}_share", sqrt(share), x)], {}))
    if floor:
        steps.append(("Max", [view.add_scalar_like(f"{made}_floor", sqrt(floor), x)], {}))
    name = ""
    for op_type, inputs, given in steps[:-1]:
        name = view.add_node(op_type, [*([name] if name else []), *inputs], f"{made}_{op_type}", **given)
    op_type, inputs, given = steps[-1]
    return view.replace(node, op_type, [*([name] if name else []), *inputs], **given)


def _divide(view: GraphView, root: NodeProto, x: str) -> None:
    """x · 1/norm becomes x / norm, for which there is an operator."""
    for inverse in view.users(root.output[0]):
        one_over = inverse.op_type == "Div" and view.scalar(inverse.input[0]) == 1.0
        if inverse.op_type != "Reciprocal" and not one_over:
            continue
        for user in view.users(inverse.output[0]):
            if user.op_type == "Mul" and view.other_input(user, str(inverse.output[0])) == x:
                view.replace(user, "Div", [x, str(root.output[0])])


REWRITE = Rewrite(
    name=NAME,
    title="Norms written as a root of squares become ReduceL2",
    pattern="Sqrt (or Pow 0.5) of ReduceSum or ReduceMean of x², with or without a constant factor and a floor, where "
    "the squares may leave fp16's range; x times the reciprocal of such a norm",
    why="A square leaves fp16 as soon as |x| passes 256. ReduceL2 computes the same and is kept in the range by "
    "reduce-l2-range; √max(s, e) is max(√s, √e). With a constant added under the root it is no ReduceL2: see rms-norm "
    "and scaled-squares.",
    default=True,
    apply=_apply,
)
