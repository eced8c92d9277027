"""Sigmoid, Tanh, Softmax and the logarithms of Sigmoid and Softmax, written with Exp, Log or Reciprocal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.reduction import axes_of
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "function-written-out"
_ALONG_ONE_AXIS = 13


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes(*_RULES):
        if view.is_quantized(node) or not view.is_float(node.output[0]):
            continue
        what = next((found for rule in _RULES[node.op_type] if (found := rule(view, node)) is not None), None)
        if what is not None:
            changes.append(applied(NAME, node, what))
    return changes


def _log(view: GraphView, node: NodeProto) -> str | None:
    """The logarithm of a Softmax or Sigmoid, which has no small numbers in fp16."""
    inner = view.maker(node.input[0], "Softmax", "Sigmoid")
    if inner is None or view.is_quantized(inner):
        return None
    source = str(inner.input[0])
    if inner.op_type == "Softmax":
        kept = {"axis": attribute(inner, "axis")} if attribute(inner, "axis") is not None else {}
        view.replace(node, "LogSoftmax", [source], **kept)
        return "log(softmax(x)) became LogSoftmax"
    opposite = view.add_node("Neg", [source], f"{node.output[0]}_opposite")
    view.replace(node, "Neg", [view.add_node("Softplus", [opposite], f"{node.output[0]}_softplus")])
    return "log(sigmoid(x)) became -softplus(-x)"


def _sigmoid(view: GraphView, node: NodeProto) -> str | None:
    """exp(x) / (exp(x) + 1)."""
    power = view.maker(node.input[0], "Exp")
    if power is None or not _is_plus(view, str(node.input[1]), str(node.input[0]), 1.0):
        return None
    view.replace(node, "Sigmoid", [str(power.input[0])])
    return "exp(x) / (exp(x) + 1) became Sigmoid"


def _tanh(view: GraphView, node: NodeProto) -> str | None:
    """(exp(2x) - 1) / (exp(2x) + 1), and (exp(x) - exp(-x)) / (exp(x) + exp(-x))."""
    top, bottom = view.maker(node.input[0], "Sub", "Add"), view.maker(node.input[1], "Add")
    if top is None or bottom is None:
        return None
    for name in dict.fromkeys(top.input):
        power = view.maker(name, "Exp")
        if power is None or not _is_plus(view, str(node.input[1]), str(name), 1.0):
            continue
        if not _is_less_one(view, top, str(name)):
            continue
        half = view.add_scalar_like(f"{node.output[0]}_half", 0.5, power.input[0])
        view.replace(node, "Tanh", [view.add_node("Mul", [power.input[0], half], f"{node.output[0]}_argument")])
        return "(exp(2x) - 1) / (exp(2x) + 1) became Tanh"
    up, down = (view.maker(name, "Exp") for name in top.input)
    if top.op_type != "Sub" or up is None or down is None or set(bottom.input) != set(top.input):
        return None
    if not _are_opposite(view, str(up.input[0]), str(down.input[0])):
        return None
    view.replace(node, "Tanh", [str(up.input[0])])
    return "(exp(x) - exp(-x)) / (exp(x) + exp(-x)) became Tanh"


def _is_plus(view: GraphView, name: str, term: str, value: float) -> bool:
    """Whether a tensor is `term` plus a constant."""
    total = view.maker(name, "Add")
    other = None if total is None else view.other_input(total, term)
    return other is not None and view.scalar(other) == value


def _is_less_one(view: GraphView, node: NodeProto, term: str) -> bool:
    if node.op_type == "Sub":
        return bool(node.input[0] == term and view.scalar(node.input[1]) == 1.0)
    return _is_plus(view, str(node.output[0]), term, -1.0)


def _are_opposite(view: GraphView, up: str, down: str) -> bool:
    for one, other in ((up, down), (down, up)):
        negated = view.maker(one, "Neg", "Mul")
        if negated is None or other not in negated.input:
            continue
        factor = view.other_input(negated, other) if negated.op_type == "Mul" else None
        if negated.op_type == "Neg" or (factor is not None and view.scalar(factor) == -1.0):
            return True
    return False


def _softmax(view: GraphView, node: NodeProto) -> str | None:
    """exp(x) · 1/sum(exp(x)), where softmax-written-out looks for a fraction."""
    for place in (0, 1):
        power, inverse = view.maker(node.input[place], "Exp"), view.maker(node.input[1 - place], "Reciprocal", "Div")
        if power is None or inverse is None:
            continue
        if inverse.op_type == "Div" and view.scalar(inverse.input[0]) != 1.0:
            continue
        total = view.maker(inverse.input[-1], "ReduceSum")
        if total is None or total.input[0] != node.input[place] or not attribute(total, "keepdims", 1):
            continue
        axes, shape = axes_of(view, total), view.shape(node.input[place])
        if axes is None or shape is None or len(axes) != 1:
            continue
        view.replace(node, "Div", [str(node.input[place]), str(total.output[0])])
        return "exp(x) · 1/sum(exp(x)) became a fraction"
    return None


def _positive_magnitude(view: GraphView, node: NodeProto) -> str | None:
    """|exp(x)|, which a norm of order 1 takes."""
    if view.maker(node.input[0], "Exp", "Softmax", "Sigmoid", "Relu") is None:
        return None
    view.replace(node, "Identity", [str(node.input[0])])
    return "the magnitude of what is not negative is itself"


_Rule = Callable[[GraphView, NodeProto], str | None]
_RULES: Mapping[str, tuple[_Rule, ...]] = {
    "Abs": (_positive_magnitude,),
    "Div": (_sigmoid, _tanh),
    "Log": (_log,),
    "Mul": (_softmax,),
}

REWRITE = Rewrite(
    name=NAME,
    title="Functions written with Exp or Log become the operator",
    pattern="exp(x) / (exp(x) + 1); (exp(2x) - 1) / (exp(2x) + 1) and (exp(x) - exp(-x)) / (exp(x) + exp(-x)); "
    "log(sigmoid(x)) and log(softmax(x)); exp(x) · 1/sum(exp(x))",
    why="exp(x) leaves fp16 at x = 11.1, and a fraction of two such numbers is 0 on HTP. The logarithm of a small "
    "probability is a guess: HTP's Sigmoid is off by up to 0.003, and what is below 6e-8 is 0. Sigmoid, Tanh, "
    "Softplus, Softmax and LogSoftmax are right for every x.",
    default=True,
    apply=_apply,
)
