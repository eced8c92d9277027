"""Relu and Clip between a layer and its QuantizeLinear, quantized apart."""

from __future__ import annotations

import math

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import requantized
from qnn.prepare.rewrites.view import GraphView

NAME = "quantized-activation"
_ALMOST = 1e-6


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Relu", "Clip"):
        layer, quantize = view.maker(node.input[0]), only_quantizer(view, str(node.output[0]))
        if layer is None or quantize is None or layer.op_type == "DequantizeLinear":
            continue
        if len(view.users(node.input[0])) > 1 or view.is_output(node.input[0]) or not view.is_quantized(layer):
            continue
        bounds = bounds_of(view, node)
        if bounds is None or is_the_range(view, quantize, bounds):
            continue
        view.set_input(node, 0, requantized(view, str(node.input[0]), quantize))
        changes.append(applied(NAME, node, f"{layer.op_type} {layer.name!r} before it is quantized as its result is"))
    return changes


def only_quantizer(view: GraphView, name: str) -> NodeProto | None:
    """The QuantizeLinear that alone reads a tensor; None for anything else."""
    users = view.users(name)
    return users[0] if len(users) == 1 and users[0].op_type == "QuantizeLinear" and not view.is_output(name) else None


def bounds_of(view: GraphView, node: NodeProto) -> tuple[float, float] | None:
    """Between which numbers the node keeps its input; None where they are computed."""
    if node.op_type == "Relu":
        return 0.0, math.inf
    found = [-math.inf, math.inf]
    for index, name in enumerate(node.input[1:]):
        bound = view.scalar(name) if name else found[index]
        if bound is None:
            return None
        found[index] = bound
    return found[0], found[1]


def is_the_range(view: GraphView, quantize: NodeProto, bounds: tuple[float, float]) -> bool:
    """Whether quantizing cuts at these bounds or within: ONNX Runtime leaves the node out then.

    It does so only where the zero point is written.
    """
    scale = view.scalar(quantize.input[1])
    zero = view.constant(quantize.input[2]) if len(quantize.input) > 2 and quantize.input[2] else None
    if scale is None or zero is None or zero.size != 1 or zero.dtype.kind not in "iu":
        return False
    info, middle = numpy.iinfo(zero.dtype), int(zero.reshape(()))
    low, high = (info.min - middle) * scale, (info.max - middle) * scale
    slack = _ALMOST * (high - low)
    return bounds[0] <= low + slack and bounds[1] >= high - slack


REWRITE = Rewrite(
    name=NAME,
    title="A Relu or Clip behind a quantized layer is quantized apart",
    pattern="layer → Relu or Clip → QuantizeLinear whose range is wider than what the Relu or Clip lets through (int8 "
    "and int16 activations, a zero point in the middle or not written)",
    why="Where the range begins at 0 the Relu is left out and the layer is quantized; elsewhere the layer has no "
    "quantized result, and the compiler refuses its weights (a DequantizeLinear per channel by itself). Quantized with "
    "the parameters of the result between the two, nothing changes: rounding keeps the order of numbers.",
    default=True,
    apply=_apply,
)
