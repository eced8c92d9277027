"""Operators on integers that the compiler lacks, by others that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "integer-plain"
_INTEGERS = frozenset({TensorProto.INT32, TensorProto.INT64})
_LARGEST_POWER = 8
# From here on Max and Min take integers; Relu does later.
_MAX_OF_INTEGERS = 12


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes(*_FORMS):
        if view.dtype(node.input[0]) in _INTEGERS and view.dtype(node.output[0]) in _INTEGERS:
            detail = _FORMS[node.op_type](view, node)
            if detail:
                changes.append(applied(NAME, node, detail))
    return changes


def _number(view: GraphView, node: NodeProto, value: int) -> str:
    dtype = tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
    return view.add_constant(f"{node.output[0]}_{abs(value)}", numpy.array(value, dtype))


def _neg(view: GraphView, node: NodeProto) -> str:
    view.replace(node, "Sub", [_number(view, node, 0), node.input[0]])
    return "0 - x"


def _arg_min(view: GraphView, node: NodeProto) -> str:
    negative = view.add_node("Sub", [_number(view, node, 0), node.input[0]], f"{node.output[0]}_negative")
    view.replace(node, "ArgMax", [negative], **{a.name: attribute(node, a.name) for a in node.attribute})
    return "ArgMax of 0 - x"


def _sign(view: GraphView, node: NodeProto) -> str:
    if view.opset() < _MAX_OF_INTEGERS:
        return ""
    below = view.add_node("Max", [node.input[0], _number(view, node, -1)], f"{node.output[0]}_above")
    view.replace(node, "Min", [below, _number(view, node, 1)])
    return "Min and Max with 1 and -1"


def _relu(view: GraphView, node: NodeProto) -> str:
    view.replace(node, "Max", [node.input[0], _number(view, node, 0)])
    return "Max with 0"


def _bitwise_not(view: GraphView, node: NodeProto) -> str:
    view.replace(node, "Sub", [_number(view, node, -1), node.input[0]])
    return "-1 - x"


def _bitwise_and(view: GraphView, node: NodeProto) -> str:
    """The low bits of x are its remainder, of negative numbers too."""
    for index in (0, 1):
        mask = view.scalar(node.input[index])
        if mask is not None and 0 < mask < _MOST and (int(mask) + 1) & int(mask) == 0:
            size = _number(view, node, int(mask) + 1)
            view.replace(node, "Mod", [node.input[1 - index], size])
            return f"Mod by {int(mask) + 1}"
    return ""


_MOST = 2.0**31 - 1  # a size of 2^31 is no int32


def _pow(view: GraphView, node: NodeProto) -> str:
    exponent = view.scalar(node.input[1])
    if exponent is None or exponent != int(exponent) or not 2 <= exponent <= _LARGEST_POWER:
        return ""
    power = str(node.input[0])
    for number in range(2, int(exponent)):
        power = view.add_node("Mul", [power, node.input[0]], f"{node.output[0]}_{number}")
    view.replace(node, "Mul", [power, node.input[0]])
    return "products"


def _reduce_l1(view: GraphView, node: NodeProto) -> str:
    return _sum_of(view, node, view.add_node("Abs", [node.input[0]], f"{node.output[0]}_magnitude"))


def _reduce_squares(view: GraphView, node: NodeProto) -> str:
    return _sum_of(view, node, view.add_node("Mul", [node.input[0], node.input[0]], f"{node.output[0]}_square"))


def _sum_of(view: GraphView, node: NodeProto, terms: str) -> str:
    """A sum over the axes of a reduction, which ReduceSum takes as an input from opset 13 on."""
    written = {a: attribute(node, a) for a in ("keepdims", "noop_with_empty_axes") if attribute(node, a) is not None}
    axes = attribute(node, "axes")
    inputs = [terms, *node.input[1:]]
    if axes is not None and view.opset() < _AXES_ARE_INPUTS:
        written["axes"] = axes
    elif axes is not None:
        inputs.append(view.add_constant(f"{node.output[0]}_axes", numpy.array(axes, numpy.int64)))
    view.replace(node, "ReduceSum", inputs, **written)
    return "a sum"


_AXES_ARE_INPUTS = 13

_FORMS: Mapping[str, Callable[[GraphView, NodeProto], str]] = {
    "ArgMin": _arg_min,
    "BitwiseAnd": _bitwise_and,
    "BitwiseNot": _bitwise_not,
    "Neg": _neg,
    "Pow": _pow,
    "ReduceL1": _reduce_l1,
    "ReduceSumSquare": _reduce_squares,
    "Relu": _relu,
    "Sign": _sign,
}

REWRITE = Rewrite(
    name=NAME,
    title="Operators that the compiler lacks for integers are written out",
    pattern="ArgMin, Neg, Sign, Relu, ReduceL1, ReduceSumSquare and BitwiseNot of int32 or int64, Pow of them by a "
    "constant from 2 to 8, BitwiseAnd with a constant of low bits",
    why="The compiler refuses them. As Sub, Min, Max, Mul, ReduceSum and Mod of integers they are exact.",
    default=True,
    apply=_apply,
)
