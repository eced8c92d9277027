"""Roots of sums of squares that leave fp16's range, by a power of two."""

from __future__ import annotations

from math import ceil, log2, prod

from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.reduction import axes_of
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "scaled-squares"
# 65504/256 squared is 65472: a square cannot leave fp16 any more.
_SCALE = 8
_AT_MOST = 14  # 2^-14 is fp16's smallest normal number


def apply(model: ModelProto) -> list[Change]:
    """sqrt(Reduce(x²) + ε) becomes sqrt(Reduce((x/s)²) + ε/s²)·s with s a power of two."""
    view = GraphView(model)
    changes = []
    for root in view.nodes("Sqrt"):
        found = None if view.is_quantized(root) else _match(view, root)
        if found is not None:
            changes.append(_replace(view, root, *found))
    return changes


def _match(view: GraphView, root: NodeProto) -> tuple[NodeProto, str, float] | None:
    """(the reduction, x, ε)."""
    inner, epsilon = root.input[0], 0.0
    plus = view.maker(inner, "Add")
    if plus is not None:
        for position in (0, 1):
            value = view.scalar(plus.input[1 - position])
            if value is not None:
                inner, epsilon = plus.input[position], value
    reduction = view.maker(inner, "ReduceSum", "ReduceMean")
    square = None if reduction is None else view.maker(reduction.input[0], "Mul", "Pow")
    if reduction is None or square is None or not view.is_float(square.input[0]) or not axes_of(view, reduction):
        return None
    squares = square.input[0] == square.input[1] if square.op_type == "Mul" else view.scalar(square.input[1]) == 2.0
    return (reduction, square.input[0], epsilon) if squares else None


def _replace(view: GraphView, root: NodeProto, reduction: NodeProto, x: str, epsilon: float) -> Change:
    terms = 1
    if reduction.op_type == "ReduceSum":
        shape = view.shape(x) or ()
        terms = prod(shape[axis] for axis in axes_of(view, reduction) or ())
    power = min(_SCALE + ceil(log2(terms) / 2), _AT_MOST)
    made = root.output[0]
    small = view.add_node("Mul", [x, view.add_scalar_like("scale", 2.0**-power, x)], f"{made}_scaled")
    inner = view.add_node("Mul", [small, small], f"{made}_squared")
    attributes = {"keepdims": attribute(reduction, "keepdims", 1)}
    axes = attribute(reduction, "axes")
    if axes is not None:
        attributes["axes"] = axes
    inner = view.add_node(reduction.op_type, [inner, *reduction.input[1:]], f"{made}_reduced", **attributes)
    if epsilon:
        inner = view.add_node("Add", [inner, view.add_scalar_like("floor", epsilon * 4.0**-power, x)], f"{made}_floor")
    inner = view.add_node("Sqrt", [inner], f"{made}_root")
    new = view.replace(root, "Mul", [inner, view.add_scalar_like("unscale", 2.0**power, x)])
    return applied(NAME, new, f"its squares are taken of x·2^-{power}, and the root is multiplied by 2^{power}")


REWRITE = Rewrite(
    name=NAME,
    title="Squares under a root are taken of a scaled-down input",
    pattern="Sqrt(ReduceSum or ReduceMean of x², with or without a constant added)",
    why="A square leaves fp16 as soon as |x| passes 256. A power of two scales exactly, and √(Σ(x/s)²)·s = √Σx², so in "
    "float32 nothing changes; ε is scaled with it. It is off by default, because in fp16 small inputs lose what large "
    "ones gain: switch it on where `qnn-forge range` names such a square. RMS norms need it not (rms-norm).",
    default=False,
    apply=apply,
)
