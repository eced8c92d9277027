"""Patterns of known faults that no rewrite mends. Each is a pure function of a prepared graph.

A matcher yields the nodes that meet its entry of faults.yaml, each with what of it fits. Whether the entry speaks of
the chip and precision at hand is the table's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy
from onnx import NodeProto, TensorProto

from qnn.prepare.rewrites import quantized_average_pool as pool_form
from qnn.prepare.rewrites import quantized_resize as resize_form
from qnn.prepare.rewrites import quantized_unsigned as signed_form
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.pool_windows import windows
from qnn.prepare.rewrites.resize_axes import axes_of
from qnn.prepare.rewrites.view import GraphView, attribute
from qnn.prepare.rewrites.wide_constants import farthest, wide_constants

Met = Iterator[tuple[NodeProto, str]]
Matcher = Callable[[GraphView], Met]

_INT32 = numpy.iinfo(numpy.int32)
_LAYERS = ("Conv", "ConvTranspose", "Gemm")
_BIAS = 2
# Behind as many steps a running sum in fp16 is off by a hundredth and more (measured: 0.9 % at 1024).
_LONG_SUM = 1000
_FP16_LOG_FLOOR = 6e-8
_16_BITS = (TensorProto.UINT16, TensorProto.INT16)
# Finer steps of a 16-bit logarithm leave the compiler's fixed point.
_LOG_STEP = 2.0**-14
_WIDE_ANGLE = 100.0
_LONG_LSTM = 10


def clipped_bias(view: GraphView) -> Met:
    """An int32 bias that stands at the end of int32: its scale was too small for it."""
    for node in view.nodes(*_LAYERS):
        dequantize = view.maker(node.input[_BIAS], "DequantizeLinear") if len(node.input) > _BIAS else None
        stored = None if dequantize is None else view.constant(dequantize.input[0])
        if stored is None or stored.dtype != numpy.int32:
            continue
        clipped = int(((stored == _INT32.max) | (stored == _INT32.min)).sum())
        if clipped:
            yield node, f"{clipped} of {stored.size} values of its int32 bias {node.input[_BIAS]!r} were clipped"


def blockwise_weights(view: GraphView) -> Met:
    """Weights quantized in blocks."""
    for node in view.nodes("DequantizeLinear"):
        if attribute(node, "block_size", 0) and view.is_constant(node.input[0]):
            for user in view.users(node.output[0]):
                yield user, f"its weights {node.input[0]!r} are quantized in blocks of {attribute(node, 'block_size')}"


def quantized_resize(view: GraphView) -> Met:
    """A quantized Resize in mode linear or cubic that the rewrite quantized-resize had to leave."""
    for node in view.nodes("Resize"):
        if attribute(node, "mode", b"nearest") == b"nearest" or not view.is_quantized(node):
            continue
        axes = axes_of(view, node)
        if axes is not None and not resize_form.is_right(view, node, axes):
            changing = [f"{axis.before} to {axis.after}" for axis in axes if axis.changes]
            yield node, f"it resizes {' and '.join(changing)}"


def quantized_average_pool(view: GraphView) -> Met:
    """A quantized AveragePool with padding that the rewrite quantized-average-pool had to leave."""
    for node in view.nodes("AveragePool"):
        found = windows(view, node) if view.is_quantized(node) else None
        if found is not None and not pool_form.is_right(node, found):
            yield node, f"its windows reach beyond the input by {[*found.begins, *found.ends]}"


def signed_activations(view: GraphView) -> Met:
    """Signed activations that the rewrite quantized-unsigned had to leave, before an operator that needs unsigned."""
    for node in view.graph.node:
        if signed_form.needs(view, node):
            yield node, f"its input {node.input[0]!r} is quantized to signed integers"


def narrow_logarithm(view: GraphView) -> Met:
    """A Log whose 16-bit result has steps of less than 2^-14."""
    for node in view.nodes("Log"):
        for user in view.users(node.output[0]):
            scale = view.scalar(user.input[1]) if user.op_type == "QuantizeLinear" else None
            if scale is not None and scale < _LOG_STEP and view.dtype(user.output[0]) in _16_BITS:
                yield node, f"its result is quantized in steps of {scale:.3g}"


def _is_weight(view: GraphView, name: str) -> bool:
    """Whether a tensor is made of constants alone."""
    seen, left = {name}, [name]
    while left:
        maker = view.maker(left[-1])
        if maker is None and not view.is_constant(left[-1]):
            return False
        left.pop()
        further = [str(own) for own in (maker.input if maker is not None else ()) if own and own not in seen]
        seen.update(further)
        left += further
    return True


def activations_by_channel(view: GraphView) -> Met:
    """Activations with a scale for each channel."""
    for node in view.nodes("QuantizeLinear"):
        scale = view.shape(node.input[1])
        if scale is not None and numpy.prod(scale) > 1 and not _is_weight(view, str(node.input[0])):
            yield node, f"{node.input[0]!r} has {int(numpy.prod(scale))} scales"


def activations_of_4_bits(view: GraphView) -> Met:
    """Activations quantized to 4 bits."""
    for node in view.nodes("QuantizeLinear"):
        four = view.dtype(node.output[0]) in (TensorProto.UINT4, TensorProto.INT4)
        if four and not _is_weight(view, str(node.input[0])):
            yield node, f"{node.input[0]!r} is quantized to 4 bits"


def cast_to_bool(view: GraphView) -> Met:
    """A float made a boolean: what fp16 rounds to 0 is False."""
    for node in view.nodes("Cast"):
        if attribute(node, "to") == TensorProto.BOOL and view.is_float(node.input[0]):
            yield node, "numbers of less than 3e-8 are 0 in fp16, and so False"


def long_sum(view: GraphView) -> Met:
    """A running sum over many elements: a phase, a position, a time."""
    for node in view.nodes("CumSum"):
        shape, axis = view.shape(node.input[0]), view.scalar(node.input[1])
        if shape is None or axis is None or view.is_quantized(node) or not view.is_float(node.input[0]):
            continue
        if shape[int(axis)] >= _LONG_SUM:
            yield node, f"a running sum of {shape[int(axis)]} elements, each step rounded to 11 bits"


def wide_integers(view: GraphView) -> Met:
    """An int64 input that the model keeps: HTP takes its low 32 bits."""
    for value in view.graph.input:
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            for node in view.users(value.name):
                yield node, f"of its int64 input {value.name!r} HTP sees the low 32 bits"


def used_wide_constant(view: GraphView) -> Met:
    """An int64 constant beyond 32 bits that the rewrite wide-constants had to leave: its low 32 bits are another
    number.
    """
    for node, name in wide_constants(view):
        yield node, f"its constant {name!r} holds {farthest(view, name)}, and HTP takes the low 32 bits"


def logarithm(view: GraphView) -> Met:
    """A Log whose argument may be what fp16 has as 0."""
    for node in view.nodes("Log"):
        if view.is_float(node.input[0]) and interval(view, node.input[0])[0] < _FP16_LOG_FLOOR:
            yield node, "below 6e-8 its argument is 0 in fp16, and the logarithm -7.6"


def periodic(view: GraphView) -> Met:
    """Sin and Cos of large angles: fp16 has steps of 0.06 from 64 on."""
    for node in view.nodes("Sin", "Cos", "Tan"):
        low, high = interval(view, node.input[0])
        if view.is_float(node.input[0]) and max(abs(low), abs(high)) > _WIDE_ANGLE:
            yield node, "an angle above 64 is rounded by 0.03 and more in fp16"


def near_ties(view: GraphView) -> Met:
    """A choice among floats: those that differ by less than fp16's step are equal."""
    for node in view.nodes("ArgMax", "ArgMin", "TopK"):
        if view.is_float(node.input[0]):
            yield node, "values that differ by less than a thousandth are equal in fp16, and the first one is taken"


def power(view: GraphView) -> Met:
    """Pow and Exp, which leave fp16's range first."""
    for node in view.nodes("Exp", "Pow"):
        if view.is_float(node.input[0]) and not view.is_quantized(node):
            yield node, "results above 65,504 are no fp16 numbers"


def coupled_gates(view: GraphView) -> Met:
    """An LSTM whose forget gate is the input gate's rest: the compiler leaves the attribute out."""
    for node in view.nodes("LSTM"):
        if attribute(node, "input_forget", 0):
            yield node, "its forget gate is coupled to its input gate (input_forget), which HTP leaves out"


def long_lstm(view: GraphView) -> Met:
    """An LSTM of many steps, each of which adds the error of HTP's gates to the cell."""
    for node in view.nodes("LSTM"):
        shape = view.shape(node.input[0])
        if shape is not None and shape[0] >= _LONG_LSTM and not view.is_quantized(node):
            yield node, f"{shape[0]} steps, each with HTP's own sigmoid and tanh, which are off by up to 0.0075"


MATCHERS: Mapping[str, Matcher] = {
    matcher.__name__: matcher
    for matcher in (
        clipped_bias,
        blockwise_weights,
        quantized_resize,
        quantized_average_pool,
        signed_activations,
        narrow_logarithm,
        activations_by_channel,
        activations_of_4_bits,
        cast_to_bool,
        long_sum,
        wide_integers,
        used_wide_constant,
        logarithm,
        periodic,
        near_ties,
        power,
        coupled_gates,
        long_lstm,
    )
}
