"""Factors and divisors beyond fp16."""

from __future__ import annotations

import math

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView

NAME = "large-factor"
_BEYOND = 65_504.0
# Two factors of up to 2^15.
_MOST = 2.0**30


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Mul", "Div"):
        side = _side(view, node)
        if side is None or view.is_quantized(node):
            continue
        name, given = str(node.input[1 - side]), str(node.input[side])
        constant = view.constant(given)
        assert constant is not None  # _side saw its value
        power = 2.0 ** math.ceil(math.log2(float(constant.reshape(()))) / 2)
        rest = view.add_constant(f"{node.output[0]}_rest", (constant / power).astype(numpy.float32))
        first = power if node.op_type == "Mul" else 1 / power
        by = view.add_constant(f"{node.output[0]}_power", numpy.asarray(first, numpy.float32))
        part = view.add_node("Mul", [name, by], f"{node.output[0]}_part")
        new = view.replace(node, node.op_type, [part, rest])
        changes.append(applied(NAME, new, f"{float(constant.reshape(())):g} in two parts: fp16 ends at 65504"))
    return changes


def _side(view: GraphView, node: NodeProto) -> int | None:
    """Which input is a positive number beyond fp16, the other one being computed in float32."""
    for side in (1, 0) if node.op_type == "Mul" else (1,):
        value, other = view.scalar(node.input[side]), node.input[1 - side]
        if value is not None and _BEYOND < value <= _MOST and not view.is_constant(other):
            return side if view.dtype(other) == TensorProto.FLOAT else None
    return None


REWRITE = Rewrite(
    name=NAME,
    title="A factor or divisor beyond fp16 comes in two parts",
    pattern="Mul or Div of float32 by one constant number between 65,504 and 2^30",
    why="fp16 ends at 65,504: divided by 1e6 every number is 0, times 1e8 it is infinite. A power of two goes first, "
    "which rounds nothing, then the rest. Numbers that are small between (below 6e-5) lose digits in fp16 as before.",
    default=True,
    apply=_apply,
)
