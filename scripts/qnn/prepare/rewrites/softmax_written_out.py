"""Softmax, LogSumExp and Softplus written with Exp, as what keeps to fp16's range; Sigmoid with a bounded exponent."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.reduction import axes_arguments, axes_of
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "softmax-written-out"
_ALONG_ONE_AXIS = 13
# exp(11.1) is the last that fp16 holds, exp(89) the first that HTP answers with 0; 1 / (1 + exp(80)) is 2e-35.
_MOST = 80.0


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Log", "ReduceLogSumExp", "Div", "Reciprocal"):
        if view.is_quantized(node) or not view.is_float(node.output[0]):
            continue
        rule = _RULES[node.op_type]
        what = rule(view, node)
        if what is not None:
            changes.append(applied(NAME, node, what))
    return changes


def _log(view: GraphView, node: NodeProto) -> str | None:
    """log(1 + exp(x)), log(exp(a) + exp(b)) and log(sum(exp(x)))."""
    source = _exp_plus_one(view, str(node.input[0]))
    if source is not None:
        view.replace(node, "Softplus", [source])
        return "log(1 + exp(x)) became Softplus"
    two = view.maker(node.input[0], "Add")
    powers = [view.maker(name, "Exp") for name in two.input] if two is not None else []
    if len(powers) == 2 and powers[0] is not None and powers[1] is not None:
        return _log_add_exp(view, node, str(powers[0].input[0]), str(powers[1].input[0]))
    total = view.maker(node.input[0], "ReduceSum")
    inner = view.maker(total.input[0], "Exp") if total is not None else None
    if total is None or inner is None:
        return None
    return _log_sum_exp(view, node, total, str(inner.input[0]))


def _log_add_exp(view: GraphView, node: NodeProto, one: str, other: str) -> str:
    """max(a, b) + log(1 + exp(-|a - b|))."""
    wanted = str(node.output[0])
    most = view.add_node("Max", [one, other], f"{wanted}_most")
    apart = view.add_node("Abs", [view.add_node("Sub", [one, other], f"{wanted}_difference")], f"{wanted}_apart")
    rest = view.add_node("Softplus", [view.add_node("Neg", [apart], f"{wanted}_below")], f"{wanted}_rest")
    view.replace(node, "Add", [most, rest])
    return "log(exp(a) + exp(b)) around the larger one"


def _reduce_log_sum_exp(view: GraphView, node: NodeProto) -> str | None:
    return _log_sum_exp(view, node, node, str(node.input[0]))


def _log_sum_exp(view: GraphView, node: NodeProto, reduction: NodeProto, source: str) -> str | None:
    """m + log(sum(exp(x - m))), m the largest of x."""
    axes, shape = axes_of(view, reduction), view.shape(source)
    largest = view.maker(source, "Sub")
    if not axes or shape is None or (largest is not None and view.maker(largest.input[1], "ReduceMax") is not None):
        return None
    wanted = str(node.output[0])
    further, attributes = axes_arguments(view, axes)
    keep = int(attribute(reduction, "keepdims", 1))
    most = view.add_node("ReduceMax", [source, *further], f"{wanted}_most", keepdims=1, **attributes)
    below = view.add_node("Sub", [source, most], f"{wanted}_below")
    powers = view.add_node("Exp", [below], f"{wanted}_powers")
    if view.opset() < _ALONG_ONE_AXIS:
        total = view.add_node("ReduceSum", [powers], f"{wanted}_total", keepdims=1, axes=list(axes))
    else:
        along = view.add_constant(f"{wanted}_axes", numpy.array(axes, numpy.int64))
        total = view.add_node("ReduceSum", [powers, along], f"{wanted}_total", keepdims=1)
    logarithm = view.add_node("Log", [total], f"{wanted}_logarithm")
    if keep:
        view.replace(node, "Add", [most, logarithm])
        return "log(sum(exp(x))) around the largest x"
    result = view.add_node("Add", [most, logarithm], f"{wanted}_kept")
    sizes = [size for axis, size in enumerate(shape) if axis not in axes]
    view.replace(node, "Reshape", [result, view.add_constant(f"{wanted}_shape", numpy.array(sizes, numpy.int64))])
    return "log(sum(exp(x))) around the largest x"


def _div(view: GraphView, node: NodeProto) -> str | None:
    """exp(x) / sum(exp(x)), and the exponent of y / (1 + exp(-x))."""
    bounded = _bounded(view, str(node.input[1]))
    if bounded is not None:
        return bounded
    top, total = view.maker(node.input[0], "Exp"), view.maker(node.input[1], "ReduceSum")
    if top is None or total is None or total.input[0] != node.input[0]:
        return None
    axes, shape = axes_of(view, total), view.shape(top.input[0])
    if shape is None or axes is None or len(axes) != 1 or not attribute(total, "keepdims", 1):
        return None
    if view.opset() < _ALONG_ONE_AXIS and axes[0] != len(shape) - 1:
        return None
    source = str(top.input[0])
    shifted = view.maker(source, "Sub")
    most = view.maker(shifted.input[1], "ReduceMax") if shifted is not None else None
    if shifted is not None and most is not None and most.input[0] == shifted.input[0] and axes_of(view, most) == axes:
        source = str(shifted.input[0])
    view.replace(node, "Softmax", [source], axis=axes[0])
    return "exp(x) / sum(exp(x)) became Softmax"


def _reciprocal(view: GraphView, node: NodeProto) -> str | None:
    return _bounded(view, str(node.input[0]))


def _bounded(view: GraphView, denominator: str) -> str | None:
    """Keep the exponent of 1 + exp(-x) in the range where HTP's Exp is large: beyond it the answer is 0."""
    power = _exp_of_plus_one(view, denominator)
    if power is None or interval(view, power.input[0])[1] <= _MOST:
        return None
    source = str(power.input[0])
    most = view.add_scalar_like(f"{power.output[0]}_most", _MOST, source)
    view.set_input(power, 0, view.add_node("Min", [source, most], f"{power.output[0]}_bounded"))
    return f"the exponent of 1 / (1 + exp(-x)) is at most {_MOST:g}"


def _exp_of_plus_one(view: GraphView, name: str) -> NodeProto | None:
    """The Exp of exp(x) + 1, where nothing else reads it."""
    total = view.maker(name, "Add")
    if total is None:
        return None
    for place in (0, 1):
        power = view.maker(total.input[place], "Exp")
        if power is not None and view.scalar(total.input[1 - place]) == 1.0:
            return power if len(view.users(power.output[0])) == 1 and not view.is_output(power.output[0]) else None
    return None


def _exp_plus_one(view: GraphView, name: str) -> str | None:
    """x of exp(x) + 1."""
    total = view.maker(name, "Add")
    if total is None:
        return None
    for place in (0, 1):
        power = view.maker(total.input[place], "Exp")
        if power is not None and view.scalar(total.input[1 - place]) == 1.0:
            return str(power.input[0])
    return None


_RULES = {"Log": _log, "ReduceLogSumExp": _reduce_log_sum_exp, "Div": _div, "Reciprocal": _reciprocal}

REWRITE = Rewrite(
    name=NAME,
    title="Functions written out with Exp keep to fp16's range",
    pattern="log(1 + exp(x)); log(exp(a) + exp(b)); log(sum(exp(x))) and ReduceLogSumExp; exp(x) / sum(exp(x)), "
    "with or without the largest x taken away first; y / (1 + exp(-x)) where -x may be above 80",
    why="exp(x) leaves fp16 at x = 11.1, is 0 on HTP from 89 on, and is garbage below -88. Softplus and "
    "Softmax are right for every x; around its largest element a LogSumExp has no exponent above 0; and "
    "where the exponent is bounded, 1 / (1 + exp(-x)) is 0 and not 1.",
    default=True,
    apply=_apply,
)
