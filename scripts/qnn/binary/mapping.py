"""How a graph's ONNX inputs and outputs appear in the context binary that is compiled from it.

Source: measured with onnxruntime-qnn 2.4 to 2.7 (QAIRT 2.48 to 2.51) by compiling one small graph for each case:

- Names stay exactly as they are, Unicode, slashes, colons and spaces included.
- Order is mostly the ONNX graph's order. An input that no node reads and an output that depends on no input are left
  out, and then, or where an output only passes an input through, the order of the rest may change.
- A scalar (rank 0) becomes shape (1,); every other shape stays.
- float32 stays float32 at the boundary also when the arithmetic inside is fp16; float16, int32, uint32, int64 and
  bool stay (the compiler puts its own casts inside; it refuses a *Cast to* int64 on an output).
- 8- and 16-bit integers that DequantizeLinear reads or QuantizeLinear writes become fixed point with scale and
  offset, offset being minus ONNX's zero point: uint8 → ufixed8, int8 → sfixed8, uint16 → ufixed16, int16 → sfixed16.
- uint8 without quantization stays uint8. No operator takes plain int8, int16 or uint16, nor uint64 and float64.
"""

from __future__ import annotations

from qnn.binary.info import QnnDType

_PLAIN = {dtype.label: dtype for dtype in QnnDType if not dtype.is_fixed_point and dtype.numpy == dtype.label}
_PLAIN["bool"] = QnnDType.BOOL8
_FIXED = {
    "int8": QnnDType.SFIXED8,
    "uint8": QnnDType.UFIXED8,
    "int16": QnnDType.SFIXED16,
    "uint16": QnnDType.UFIXED16,
    "int32": QnnDType.SFIXED32,
    "uint32": QnnDType.UFIXED32,
}
# Where nothing says whether a tensor is quantized, these may be either; wider integers are indices and counts.
_EITHER = frozenset({"int8", "uint8", "int16", "uint16"})


def plain_dtype(dtype: str) -> QnnDType:
    """The QNN type of a tensor that is not quantized; `dtype` is NumPy's name. UNKNOWN for types QNN has not."""
    return _PLAIN.get(dtype, QnnDType.UNKNOWN)


def fixed_dtype(dtype: str) -> QnnDType:
    """The QNN fixed-point type that stores a quantized tensor of this NumPy integer type; UNKNOWN for floats."""
    return _FIXED.get(dtype, QnnDType.UNKNOWN)


def possible_dtypes(dtype: str, quantized: bool | None) -> tuple[QnnDType, ...]:
    """The QNN types a tensor of NumPy type `dtype` may have in the binary; `quantized` None: not known beforehand."""
    if quantized is None:
        return (plain_dtype(dtype), fixed_dtype(dtype)) if dtype in _EITHER else (plain_dtype(dtype),)
    return (fixed_dtype(dtype) if quantized else plain_dtype(dtype),)


def qnn_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A tensor's shape in the binary: scalars have one element along one axis."""
    return shape or (1,)
