"""Softplus on a flat tensor: in the layout that convolutions leave behind it, the compiler's Softplus is wrong."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView

NAME = "softplus-flat"
_FLAT_RANK = 2


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Softplus"):
        shape = view.shape(node.input[0])
        if shape is None or len(shape) <= _FLAT_RANK or view.is_quantized(node) or _is_mish(view, node):
            continue
        source, name = str(node.input[0]), str(node.output[0])
        flat = reshaped(view, source, [shape[0], prod(shape[1:])], f"{name}_flat_in")
        result = view.add_node("Softplus", [flat], f"{name}_flat")
        sizes = view.add_constant(f"{name}_shape", numpy.array(shape, numpy.int64))
        view.replace(node, "Reshape", [result, sizes])
        changes.append(applied(NAME, node, f"computed on [{shape[0]}, {prod(shape[1:])}]"))
    return changes


def _is_mish(view: GraphView, node: NodeProto) -> bool:
    """x · tanh(softplus(x)), which the compiler takes as one operator and computes rightly."""
    users = view.users(node.output[0])
    if len(users) != 1 or users[0].op_type != "Tanh":
        return False
    after = view.users(users[0].output[0])
    return (
        len(after) == 1
        and after[0].op_type == "Mul"
        and view.other_input(after[0], users[0].output[0]) == node.input[0]
    )


REWRITE = Rewrite(
    name=NAME,
    title="Softplus is computed on a flat tensor",
    pattern="Softplus of three or more dimensions, other than inside Mish",
    why="Behind a Conv a tensor keeps the convolution's layout, and there the compiler's Softplus answers "
    "with the wrong sign for negative numbers: 0.70 where 0.000006 is right. A Reshape to two dimensions "
    "makes the layout flat, where Softplus is right, and moves no number.",
    default=True,
    apply=_apply,
)
