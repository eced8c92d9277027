"""Exp and Softplus of very negative numbers."""

from __future__ import annotations

from onnx import ModelProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.view import GraphView

NAME = "clip-exp"
# exp(-17.4) is the last that fp16 does not round to 0, exp(-88.1) the first that HTP answers wrongly: -80 is far from
# both, and in float32 exp(-80) is 1.8e-35.
LEAST = -80.0
_CLIP_BY_INPUT = 11
_CLIP_OF_FLOAT16 = 11


def apply(model: ModelProto) -> list[Change]:
    """Put Clip(min=-80) before every Exp and Softplus whose argument may be lower."""
    view = GraphView(model)
    changes: list[Change] = []
    clipped: dict[str, str] = {}
    for node in view.nodes("Exp", "Softplus"):
        source = node.input[0]
        if not view.is_float(source) or view.is_quantized(node) or interval(view, source)[0] >= LEAST:
            continue
        if view.opset() < _CLIP_OF_FLOAT16 and view.dtype(source) != TensorProto.FLOAT:
            changes.append(refused(NAME, node, "Clip of float16 needs opset 11"))
            continue
        if source not in clipped:
            clipped[source] = _clip(view, source)
        view.set_input(node, 0, clipped[source])
        changes.append(applied(NAME, node, f"Clip(min={LEAST:g}) before it: below, HTP answers wrongly"))
    return changes


def _clip(view: GraphView, source: str) -> str:
    if view.opset() < _CLIP_BY_INPUT:
        return view.add_node("Clip", [source], f"{source}_clipped", min=LEAST)
    low = view.add_scalar_like(f"{source}_least", LEAST, source)
    return view.add_node("Clip", [source, low], f"{source}_clipped")


REWRITE = Rewrite(
    name=NAME,
    title="Clip(min=-80) before Exp and Softplus",
    pattern="Exp or Softplus whose argument, as far as the graph tells, may be below -80",
    why="For arguments below about -88 HTP answers with numbers up to ±131,008 where 0 is right (Exp and Softplus, "
    "every chip tried); one such number ruins a written-out softmax or a linear attention. exp(-17.4) is 0 in fp16 "
    "already, so a Clip at -80 changes no fp16 result; in float32 it changes numbers below 2e-35.",
    default=True,
    apply=apply,
)
