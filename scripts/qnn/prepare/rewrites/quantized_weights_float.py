"""Quantized weights of layers that are not quantized themselves, as floats."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "quantized-weights-float"
_LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_BETWEEN = ("Relu", "Clip")
# The axis of a layer's weights that the compiler takes scales along.
_OUTPUT_AXIS = {"Conv": 0, "Gemm": 1, "MatMul": -1}
# Of these a DequantizeLinear by itself is refused; int8 and uint8 with one scale are right.
_REFUSED = frozenset({TensorProto.INT4, TensorProto.UINT4, TensorProto.INT16, TensorProto.INT32})


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes: list[Change] = []
    for node in view.nodes(*_LAYERS):
        whole = is_whole(view, node)
        for index, name in enumerate(node.input):
            dequantize = view.maker(name, "DequantizeLinear")
            if dequantize is None or not view.is_constant(dequantize.input[0]):
                continue
            if not (_is_wrong(view, node, index, dequantize) if whole else _is_refused(view, dequantize)):
                continue
            values = dequantized(view, dequantize)
            if values is None:
                changes.append(refused(NAME, node, f"{name!r} lies in a file of its own, or its scales are computed"))
                continue
            view.set_input(node, index, view.add_constant(f"{name}_float", values))
            why = "the compiler has no form of their quantization" if whole else "the node is not quantized"
            changes.append(applied(NAME, node, f"{dequantize.input[0]!r} became floats: {why}"))
    return changes


def is_whole(view: GraphView, node: NodeProto) -> bool:
    """Whether a layer reads DequantizeLinear and constants alone and its result is quantized: one node for HTP."""
    reads = all(
        not name or view.is_constant(name) or view.maker(name, "DequantizeLinear") is not None for name in node.input
    )
    if not reads:
        return False
    name = str(node.output[0])
    users = view.users(name)
    if len(users) == 1 and users[0].op_type in _BETWEEN and not view.is_output(name):
        name = str(users[0].output[0])
        users = view.users(name)
    return bool(users) and not view.is_output(name) and all(user.op_type == "QuantizeLinear" for user in users)


def dequantized(view: GraphView, dequantize: NodeProto) -> Array | None:
    """What a DequantizeLinear of constants gives, in its own type; None where one of them is not at hand."""
    stored, scale = view.constant(dequantize.input[0]), view.constant(dequantize.input[1])
    has_zero = len(dequantize.input) > 2 and dequantize.input[2]
    zero = view.constant(dequantize.input[2]) if has_zero else None
    if stored is None or scale is None or (has_zero and zero is None):
        return None
    axis, block = int(attribute(dequantize, "axis", 1)), int(attribute(dequantize, "block_size", 0))

    def full(parameters: Array) -> Array:
        if parameters.size == 1:
            return parameters.reshape(())
        if block:
            return numpy.repeat(parameters, block, axis=axis).take(range(stored.shape[axis]), axis=axis)
        return parameters.reshape([-1 if other == axis % stored.ndim else 1 for other in range(stored.ndim)])

    around = stored.astype(numpy.int32) if zero is None else stored.astype(numpy.int32) - full(zero).astype(numpy.int32)
    kind = tensor_dtype_to_np_dtype(view.dtype(dequantize.input[1]))
    values: Array = (around.astype(numpy.float32) * full(scale).astype(numpy.float32)).astype(kind)
    return values


def _is_wrong(view: GraphView, node: NodeProto, index: int, dequantize: NodeProto) -> bool:
    """Whether a quantized layer's weights have scales along the axis that is summed over, or blocks beside 8 bits."""
    shape, scale = view.shape(dequantize.output[0]), view.shape(dequantize.input[1])
    if index != 1 or shape is None or scale is None or prod(scale) == 1 or node.op_type not in _OUTPUT_AXIS:
        return False
    if attribute(dequantize, "block_size", 0):
        activations = view.maker(node.input[0], "DequantizeLinear")
        return activations is not None and view.dtype(activations.input[0]) in (TensorProto.UINT8, TensorProto.INT8)
    axis = int(attribute(dequantize, "axis", 1)) % len(shape)
    turned = node.op_type == "Gemm" and attribute(node, "transB", 0)
    return axis != (0 if turned else _OUTPUT_AXIS[node.op_type] % len(shape))


def _is_refused(view: GraphView, dequantize: NodeProto) -> bool:
    scale = view.shape(dequantize.input[1])
    several = scale is None or prod(scale) > 1
    return several or view.dtype(dequantize.input[0]) in _REFUSED


REWRITE = Rewrite(
    name=NAME,
    title="Quantized weights of a float layer become floats",
    pattern="Conv, ConvTranspose, Gemm or MatMul by weights quantized per channel, in blocks or in 4 bits, whose input "
    "or result is not quantized (weights only are, or the layer is the first or the last); weights with a scale for "
    "each input channel; weights in blocks beside 8-bit activations",
    why="The compiler takes such weights only where input and result are quantized too, and refuses a DequantizeLinear "
    "of them by itself; scales along the summed axis it takes for others (33 % off in a MatMul). "
    "Their values as floats are what the layer is computed with anyway. It costs the space that quantizing saved: "
    "quantize the activations as well, and per output channel, to keep it.",
    default=True,
    apply=_apply,
)
