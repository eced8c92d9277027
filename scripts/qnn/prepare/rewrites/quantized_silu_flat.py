"""SiLU with 16-bit activations, its Sigmoid computed on a flat tensor."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import requantized, reshaped
from qnn.prepare.rewrites.view import GraphView

NAME = "quantized-silu-flat"
_FLAT_RANK = 2


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Sigmoid"):
        dequantize = view.maker(node.input[0], "DequantizeLinear")
        shape = view.shape(node.input[0])
        result = _dequantized(view, str(node.output[0]))
        if dequantize is None or shape is None or result is None or len(shape) <= _FLAT_RANK:
            continue
        if view.dtype(dequantize.input[0]) not in (TensorProto.UINT16, TensorProto.INT16):
            continue
        if not any(_multiplies(view, user, result, node) for user in view.users(result.output[0])):
            continue
        name = str(node.output[0])
        flat = reshaped(view, str(node.input[0]), [shape[0], prod(shape[1:])], f"{name}_flat_in")
        flat = requantized(view, flat, dequantize)
        sigmoid = requantized(view, view.add_node("Sigmoid", [flat], f"{name}_flat"), result)
        sizes = view.add_constant(f"{name}_shape", numpy.array(shape, numpy.int64))
        view.replace(node, "Reshape", [sigmoid, sizes])
        changes.append(applied(NAME, node, f"computed on [{shape[0]}, {prod(shape[1:])}]"))
    return changes


def _dequantized(view: GraphView, name: str) -> NodeProto | None:
    """The DequantizeLinear behind a tensor's only QuantizeLinear."""
    users = view.users(name)
    if len(users) != 1 or users[0].op_type != "QuantizeLinear":
        return None
    after = view.users(users[0].output[0])
    return after[0] if len(after) == 1 and after[0].op_type == "DequantizeLinear" else None


def _multiplies(view: GraphView, user: NodeProto, result: NodeProto, node: NodeProto) -> bool:
    return user.op_type == "Mul" and view.other_input(user, result.output[0]) is not None and bool(node.input)


REWRITE = Rewrite(
    name=NAME,
    title="SiLU with 16-bit activations has a flat Sigmoid",
    pattern="x · Sigmoid(y) between 16-bit QuantizeLinear nodes, of three or more dimensions",
    why="Behind a Conv the compiler takes Conv, Sigmoid and Mul together, and at some sizes (9 to 12 pixels "
    "wide) answers with numbers of other places: cosine 0.35. With Reshapes around the Sigmoid, quantized"
    " with the same parameters so that nothing is rounded again, it does not, and every size is right.",
    default=True,
    apply=_apply,
)
