"""Integer Div by a constant power of two, whose negative results the compiler rounds the wrong way."""

from __future__ import annotations

import numpy
from onnx import ModelProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.view import Array, GraphView

NAME = "integer-division"
_SIGNED = frozenset({TensorProto.INT32, TensorProto.INT64})


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Div"):
        divisor = view.constant(node.input[1])
        if divisor is None or view.dtype(node.input[0]) not in _SIGNED or not _has_power_of_two(divisor):
            continue
        if interval(view, node.input[0])[0] >= 0:
            continue
        truncated = truncated_quotient(view, str(node.input[0]), divisor, str(node.output[0]))
        view.replace(node, "Identity", [truncated])
        changes.append(applied(NAME, node, "divides the magnitude and puts the sign back"))
    return changes


def truncated_quotient(view: GraphView, dividend: str, divisor: Array, wanted: str) -> str:
    """The quotient, rounded towards 0 on every toolchain."""
    magnitude = view.add_node("Abs", [dividend], f"{wanted}_magnitude")
    by = view.add_constant(f"{wanted}_by", numpy.abs(divisor))
    positive = view.add_node("Div", [magnitude, by], f"{wanted}_positive")
    zero = view.add_constant(f"{wanted}_zero", numpy.zeros((), divisor.dtype))
    negative = view.add_node("Sub", [zero, positive], f"{wanted}_negative")
    if (divisor > 0).all():
        below = view.add_node("Less", [dividend, zero], f"{wanted}_below")
    elif (divisor < 0).all():
        below = view.add_node("Less", [zero, dividend], f"{wanted}_above")
    else:
        signs = view.add_constant(f"{wanted}_signs", numpy.sign(divisor))
        signed = view.add_node("Mul", [dividend, signs], f"{wanted}_signed")
        below = view.add_node("Less", [signed, zero], f"{wanted}_below")
    return view.add_node("Where", [below, negative, positive], f"{wanted}_quotient")


def _has_power_of_two(divisor: Array) -> bool:
    size = numpy.abs(divisor.astype(numpy.int64))
    return bool(((size >= 2) & ((size & (size - 1)) == 0)).any())


REWRITE = Rewrite(
    name=NAME,
    title="Integer division by a power of two keeps its rounding",
    pattern="Div of int32 or int64 that may be negative by a constant that is a power of two, of either sign",
    why="The compiler makes a shift of it, which rounds -5 / 2 to -3; ONNX rounds towards 0. The quotient of "
    "the magnitudes with the sign put back is right for every value but the smallest int32.",
    default=True,
    apply=_apply,
)
