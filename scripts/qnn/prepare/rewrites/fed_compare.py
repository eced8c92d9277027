"""Comparisons of numbers that are fed, with a constant."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.fed_mask_floor import is_fed
from qnn.prepare.rewrites.view import GraphView

NAME = "fed-compare"
# In float32 a product with a power of two rounds nothing. Numbers beyond 4 · 8000 are beyond every constant below.
_SMALLER, _FAR, _END = 0.25, 8000.0, 8192.0
_MOST = 32_000.0
_LESS = frozenset({"Less", "LessOrEqual"})
_DEPTH = 12


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
        fed = _fed_side(view, node)
        if fed is None or view.is_quantized(node):
            continue
        below = (node.op_type in _LESS) == (fed == 0)
        name, made = str(node.input[fed]), str(node.output[0])
        sign = -1.0 if below else 1.0
        small = view.add_node("Mul", [name, _constant(view, made, _SMALLER)], f"{made}_quarter")
        ended = view.add_node("Max" if below else "Min", [small, _constant(view, made, sign * _END)], f"{made}_ended")
        far = view.add_node("Less" if below else "Greater", [ended, _constant(view, made, sign * _FAR)], f"{made}_far")
        near = view.add_node(node.op_type, list(node.input), f"{made}_near")
        view.replace(node, "Or", [near, far])
        changes.append(applied(NAME, node, f"{name!r} may be beyond fp16"))
    return changes


def _fed_side(view: GraphView, node: NodeProto) -> int | None:
    """Which input is fed, where the other one is a constant within 32,000."""
    for side in (0, 1):
        bound = view.constant(node.input[1 - side])
        name = str(node.input[side])
        if bound is None or view.dtype(name) != TensorProto.FLOAT or not is_fed(view, name, _DEPTH):
            continue
        if bound.size and bool((numpy.abs(bound) < _MOST).all()):
            return side
    return None


def _constant(view: GraphView, made: str, value: float) -> str:
    return view.add_constant(f"{made}_by", numpy.asarray(value, numpy.float32))


REWRITE = Rewrite(
    name=NAME,
    title="A comparison of a fed number holds beyond fp16",
    pattern="Less, LessOrEqual, Greater or GreaterOrEqual of a float graph input (or what is made of graph inputs "
    "without any layer) with a constant within ±32,000",
    why="HTP answers no to every such question about a number beyond fp16: -3.4e38 is not below -1, so a mask that is "
    "fed masks nothing. A quarter of the number, with an end at 8,192, tells whether it is beyond 32,000; "
    "if so, the answer is yes, else it is that of the comparison itself. In float32 both are the same.",
    default=True,
    apply=_apply,
)
