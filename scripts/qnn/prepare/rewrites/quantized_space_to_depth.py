"""Quantized SpaceToDepth with one quantization on both sides."""

from __future__ import annotations

from onnx import ModelProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import requantized, same_parameters
from qnn.prepare.rewrites.view import GraphView

NAME = "quantized-space-to-depth"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("SpaceToDepth"):
        before, users = view.maker(node.input[0], "DequantizeLinear"), view.users(node.output[0])
        behind = [user for user in users if user.op_type == "QuantizeLinear"]
        if before is None or not behind or same_parameters(view, before, behind[0]):
            continue
        view.set_input(node, 0, requantized(view, str(node.input[0]), behind[0]))
        changes.append(applied(NAME, node, "its input is quantized as its result is"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="SpaceToDepth is quantized alike on both sides",
    pattern="SpaceToDepth between DequantizeLinear and QuantizeLinear with different parameters",
    why="The compiler moves the integers and takes them for the result's: every number is off by the quotient of the "
    "scales. Quantized again before it, rounded as it would be behind it, it only moves.",
    default=True,
    apply=_apply,
)
