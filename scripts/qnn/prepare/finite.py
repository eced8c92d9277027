"""Weights that are not numbers, named before anything is made of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.errors.graphs import NotNumbers
from qnn.prepare.weights import is_far, span_of

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
# Operators and those of their inputs that are learned: an infinity there makes inf - inf or 0 × inf of any data.
# Elsewhere it is in order: the border of a Clip, the padding of a maximum, an attention mask.
_LEARNED = {
    "BatchNormalization": (1, 2, 3, 4),
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "DequantizeLinear": (1,),
    "GRU": (1, 2, 3),
    "Gemm": (0, 1, 2),
    "GroupNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "LSTM": (1, 2, 3, 7),
    "LayerNormalization": (1, 2),
    "MatMul": (0, 1),
    "PRelu": (1,),
    "QuantizeLinear": (1,),
    "RNN": (1, 2, 3),
}
_CHUNK = 8 << 20


def refuse_not_numbers(model: ModelProto) -> None:
    """Raise NotNumbers (QF415) naming every float initializer that holds NaN, and every one of a layer's weights that
    holds an infinity. Expects a sorted graph, in which nothing is left that no output needs.
    """
    learned = {
        node.input[position]
        for node in model.graph.node
        for position in _LEARNED.get(node.op_type, ())
        if position < len(node.input) and node.domain in ("", "ai.onnx")
    }
    faults = [
        f"the weights {tensor.name!r} hold {what}{_user(model, tensor.name)}"
        for tensor in model.graph.initializer
        if tensor.data_type in _FLOATS and (what := _fault(tensor, infinities=tensor.name in learned))
    ]
    if faults:
        more = f", and {len(faults) - 1} more like them" if len(faults) > 1 else ""
        raise NotNumbers(
            f"{faults[0]}{more}",
            remedy="export the model again from a sound checkpoint; one whose training diverged has such weights",
            details=faults[1:],
        )


def _fault(tensor: TensorProto, *, infinities: bool) -> str:
    """How many values are not numbers, and where the first is; empty when all are."""
    wrong, first, start = 0, -1, 0
    for values in _values(tensor):
        bad = ~numpy.isfinite(values) if infinities else numpy.isnan(values)
        if bad.any():
            first = start + int(bad.argmax()) if first < 0 else first
            wrong += int(bad.sum())
        start += values.size
    if not wrong:
        return ""
    where = [int(index) for index in numpy.unravel_index(first, tuple(tensor.dims) or (1,))]
    words = "NaN or infinite" if infinities else "NaN"
    return f"{wrong} of {start} values that are {words}, the first at {where}"


def _values(tensor: TensorProto) -> Iterator[numpy.ndarray]:
    """The values of a float tensor, flat and in order, never more than _CHUNK bytes at once from a file."""
    if not is_far(tensor):
        yield onnx.numpy_helper.to_array(tensor).reshape(-1)
        return
    span = span_of(tensor)
    with span.file.open("rb") as stream:
        stream.seek(span.offset)
        for start in range(0, span.length, _CHUNK):
            data = stream.read(min(_CHUNK, span.length - start))
            yield numpy.frombuffer(data, tensor_dtype_to_np_dtype(tensor.data_type))


def _user(model: ModelProto, name: str) -> str:
    node: NodeProto | None = next((node for node in model.graph.node if name in node.input), None)
    return "" if node is None else f"; node {node.name!r} ({node.op_type}) uses them"
