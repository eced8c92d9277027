"""Mod of integers as a difference."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.integer_division import truncated_quotient
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "integer-mod"
_SIGNED = frozenset({TensorProto.INT32, TensorProto.INT64})


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Mod"):
        if view.dtype(node.input[0]) in _SIGNED:
            _replace(view, node)
            changes.append(applied(NAME, node, "a - (a / k) · k"))
    return changes


def _replace(view: GraphView, node: NodeProto) -> None:
    """The remainder has the dividend's sign (fmod = 1) or the divisor's, as Python's % has."""
    dividend, by = (str(name) for name in node.input)
    wanted = str(node.output[0])
    divisor = view.constant(by)
    if divisor is None:
        quotient = view.add_node("Div", [dividend, by], f"{wanted}_quotient")
    else:
        quotient = truncated_quotient(view, dividend, divisor, wanted)
    product = view.add_node("Mul", [quotient, by], f"{wanted}_product")
    if attribute(node, "fmod", 0):
        view.replace(node, "Sub", [dividend, product])
        return
    rest = view.add_node("Sub", [dividend, product], f"{wanted}_rest")
    zero = view.add_constant(f"{wanted}_zero", numpy.zeros((), tensor_dtype_to_np_dtype(view.dtype(dividend))))
    more = view.add_node("Add", [rest, by], f"{wanted}_more")
    if divisor is not None and (divisor > 0).all():
        other_sign = view.add_node("Less", [rest, zero], f"{wanted}_below")
    elif divisor is not None and (divisor < 0).all():
        other_sign = view.add_node("Less", [zero, rest], f"{wanted}_above")
    else:
        below = view.add_node("Less", [rest, zero], f"{wanted}_below")
        falling = view.add_node("Less", [by, zero], f"{wanted}_falling")
        differ = view.add_node("Xor", [below, falling], f"{wanted}_differ")
        none = view.add_node("Equal", [rest, zero], f"{wanted}_none")
        some = view.add_node("Not", [none], f"{wanted}_some")
        other_sign = view.add_node("And", [differ, some], f"{wanted}_other_sign")
    view.replace(node, "Where", [other_sign, more, rest])


REWRITE = Rewrite(
    name=NAME,
    title="Mod of integers becomes a difference",
    pattern="Mod of int32 or int64, with fmod or without",
    why="The compiler computes Mod in fp16, wrong for magnitudes above 2048, and refuses fmod. Division, "
    "product and difference of int32 are exact.",
    default=True,
    apply=_apply,
)
