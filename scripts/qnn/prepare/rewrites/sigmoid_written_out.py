"""Sigmoid as 1 / (1 + exp(-x)), where its small results matter."""

from __future__ import annotations

from onnx import ModelProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView

NAME = "sigmoid-written-out"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Sigmoid"):
        source, name = str(node.input[0]), str(node.output[0])
        if not view.is_float(source) or view.is_quantized(node):
            continue
        one = view.add_scalar_like(f"{name}_one", 1.0, source)
        power = view.add_node("Exp", [view.add_node("Neg", [source], f"{name}_neg")], f"{name}_exp")
        view.replace(node, "Div", [one, view.add_node("Add", [power, one], f"{name}_sum")])
        changes.append(applied(NAME, node, "1 / (1 + exp(-x)), whose small results keep their digits"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="Sigmoid written out",
    pattern="Sigmoid, except inside quantized graphs",
    why="HTP's fp16 Sigmoid has the same absolute error for large and small results: 0.0006 alone, up to 0.003 after a "
    "MatMul. So results below 0.1 have one or two right digits (DTLN's masks: 0.05 is off by 0.002, and the sound "
    "under them by 8 to 50 %). Exp and Div keep three digits at every size. In float32 both are the same to 1e-7. Off "
    "by default: it is three nodes more for each Sigmoid, and most networks, SiLU among them, do not care. Switch it "
    "on where a sigmoid is a mask.",
    default=False,
    apply=_apply,
)
