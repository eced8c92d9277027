"""LogSoftmax of numbers that are far apart."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.clip_exp import LEAST
from qnn.prepare.rewrites.reduction import axes_arguments
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "log-softmax-range"
_ALONG_ONE_AXIS = 13


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("LogSoftmax"):
        shape, source = view.shape(node.input[0]), str(node.input[0])
        if not shape or view.is_quantized(node) or not view.is_float(source):
            continue
        low, high = interval(view, source)
        axis = int(attribute(node, "axis", -1 if view.opset() >= _ALONG_ONE_AXIS else 1)) % len(shape)
        along_one = view.opset() >= _ALONG_ONE_AXIS or axis == len(shape) - 1
        if high - low > -LEAST and along_one:
            _write_out(view, node, axis)
            changes.append(applied(NAME, node, "x - max - log(sum(exp(x - max))), no exponent below -80"))
    return changes


def _write_out(view: GraphView, node: NodeProto, axis: int) -> None:
    source, made = str(node.input[0]), str(node.output[0])
    further, attributes = axes_arguments(view, (axis,))
    most = view.add_node("ReduceMax", [source, *further], f"{made}_most", keepdims=1, **attributes)
    below = view.add_node("Sub", [source, most], f"{made}_below")
    floored = view.add_node("Max", [below, view.add_scalar_like(f"{made}_least", LEAST, source)], f"{made}_floored")
    powers = view.add_node("Exp", [floored], f"{made}_powers")
    if view.opset() < _ALONG_ONE_AXIS:
        total = view.add_node("ReduceSum", [powers], f"{made}_total", keepdims=1, axes=[axis])
    else:
        along = view.add_constant(f"{made}_axes", numpy.array([axis], numpy.int64))
        total = view.add_node("ReduceSum", [powers, along], f"{made}_total", keepdims=1)
    view.replace(node, "Sub", [below, view.add_node("Log", [total], f"{made}_logarithm")])


REWRITE = Rewrite(
    name=NAME,
    title="LogSoftmax of numbers that are far apart is written out",
    pattern="LogSoftmax whose numbers, as far as the graph tells, may be more than 80 apart",
    why="Under a mask of -3.4e38 HTP's LogSoftmax is wrong in nearly every row (cosine 0.39), and logits of ±600 "
    "come out 10 % off. With a floor of -80 under the exponents, whose powers are 0 beside the 1 of the largest, the "
    "sum is the same in float32.",
    default=True,
    apply=_apply,
)
