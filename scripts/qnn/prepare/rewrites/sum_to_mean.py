"""A sum divided by the number of its terms becomes a mean."""

from __future__ import annotations

from math import prod

from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.reduction import axes_arguments, axes_of
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "sum-to-mean"
_TOLERANCE = 1e-6  # exporters write 1/N rounded to float32


def apply(model: ModelProto) -> list[Change]:
    """ReduceSum followed by Mul(1/N) or Div(N) becomes ReduceMean."""
    view = GraphView(model)
    changes = []
    for node in view.nodes("Mul", "Div"):
        for position in (0, 1) if node.op_type == "Mul" else (0,):
            total = view.maker(node.input[position], "ReduceSum")
            scale = view.scalar(node.input[1 - position])
            if total is None or not scale or view.is_quantized(node) or not view.is_float(node.output[0]):
                continue
            axes = axes_of(view, total)
            shape = view.shape(total.input[0])
            if not axes or shape is None or view.shape(node.output[0]) != view.shape(total.output[0]):
                continue
            terms = prod(shape[axis] for axis in axes)
            divisor = scale if node.op_type == "Div" else 1 / scale
            if terms > 1 and abs(divisor - terms) <= _TOLERANCE * terms:
                changes.append(_replace(view, node, total, axes, terms))
                break
    return changes


def _replace(view: GraphView, node: NodeProto, total: NodeProto, axes: tuple[int, ...], terms: int) -> Change:
    inputs, attributes = axes_arguments(view, axes)
    keepdims = attribute(total, "keepdims", 1)
    view.replace(node, "ReduceMean", [total.input[0], *inputs], keepdims=keepdims, **attributes)
    return applied(NAME, node, f"the sum {total.name} of {terms} terms, divided by {terms}, is ReduceMean")


REWRITE = Rewrite(
    name=NAME,
    title="A sum divided by the number of its terms becomes ReduceMean",
    pattern="ReduceSum(x) followed by Mul with the constant 1/N or Div by the constant N, where N is the number of "
    "elements summed",
    why="The sum passes through fp16, whose largest number is 65,504; a mean is computed without it. Magika's sums of "
    "squares reach 160,000 and came out as 131,008. A mean is the sum divided by N: the results differ in the last "
    "bit of float32.",
    default=True,
    apply=apply,
)
