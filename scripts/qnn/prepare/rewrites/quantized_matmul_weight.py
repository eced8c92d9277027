"""Per-channel quantized weights of a MatMul without dimensions of 1 in front."""

from __future__ import annotations

from onnx import ModelProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "quantized-matmul-weight"
_MATRIX = 2


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("MatMul"):
        dequantize = view.maker(node.input[1], "DequantizeLinear")
        shape, first = view.shape(node.input[1]), view.shape(node.input[0])
        if dequantize is None or shape is None or first is None or attribute(dequantize, "block_size", 0):
            continue
        stored = view.constant(dequantize.input[0])
        scale = view.shape(dequantize.input[1])
        if stored is None or not scale or len(shape) <= _MATRIX or set(shape[:-2]) != {1} or len(first) < len(shape):
            continue
        axis = int(attribute(dequantize, "axis", 1)) % len(shape) - (len(shape) - _MATRIX)
        if axis < 0:
            continue
        wanted = f"{node.output[0]}_matrix"
        values = view.add_constant(f"{wanted}_q", stored.reshape(shape[-2:]))
        inputs = [values, *dequantize.input[1:]]
        matrix = view.add_node("DequantizeLinear", inputs, wanted, axis=axis, domain=dequantize.domain)
        view.set_input(node, 1, matrix)
        changes.append(applied(NAME, node, f"weights {list(shape)} became {list(shape[-2:])}"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="Per-channel MatMul weights are a matrix",
    pattern="MatMul by constant weights quantized per channel, with dimensions of 1 before the last two",
    why="On v69 such a MatMul over a batch comes out wrong (error of the size of the result). The same "
    "weights as a matrix are right on every arch.",
    default=True,
    apply=_apply,
)
