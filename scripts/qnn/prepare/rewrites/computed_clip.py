"""A Clip with bounds that are computed becomes Max and Min."""

from __future__ import annotations

from onnx import ModelProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView

NAME = "computed-clip"


def apply(model: ModelProto) -> list[Change]:
    """Clip(x, low, high) becomes Min(Max(x, low), high) where a bound is no constant."""
    view = GraphView(model)
    changes = []
    for node in view.nodes("Clip"):
        bounds = [node.input[index] if len(node.input) > index else "" for index in (1, 2)]
        if all(not name or view.is_constant(name) for name in bounds) or view.is_quantized(node):
            continue
        low, high = bounds
        value = node.input[0]
        if low and high:
            value = view.add_node("Max", [value, low], f"{node.output[0]}_at_least")
        new = view.replace(node, "Min" if high else "Max", [value, high or low])
        names = ", ".join(name for name in bounds if name and not view.is_constant(name))
        changes.append(applied(NAME, new, f"was a Clip whose bounds are computed ({names})"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="A Clip with computed bounds becomes Max and Min",
    pattern="Clip whose min or max is not a constant",
    why="The NPU's clamp takes constants only, and the compiler refuses anything else. ONNX defines Clip as "
    "Min(max, Max(x, min)), so the result is the same bit for bit.",
    default=True,
    apply=apply,
)
