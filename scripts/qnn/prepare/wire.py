"""The protobuf wire format of an ONNX file, as far as it takes to leave large weights out of memory.

Parsing a 400 MB model through protobuf and onnx's tools costs seconds and several times its size, because each of
them copies every weight. No transformation of preparation looks into a large weight, so reading leaves its bytes in
the file and puts a reference in their place (`cut`), and writing copies them over (`frame`).

Source of the numbers: onnx.proto (ModelProto 7 graph; GraphProto 5 initializer; TensorProto 2 data_type, 9 raw_data)
and the protobuf encoding reference.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from onnx import TensorProto

from qnn.prepare.weights import Span, put_far

MODEL_GRAPH = 7
GRAPH_INITIALIZER = 5
TENSOR_RAW_DATA = 9

# Weights from this size on stay in their file. Integers of any size are read: they may be shapes and indices.
FAR_BYTES = 64 << 10
_READ_TYPES = frozenset({TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING})

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5

Buffer = bytes | mmap.mmap
Field = tuple[int, int, int, int]  # number, start with its tag, start of its payload, end; payload == end for no bytes


class WireError(ValueError):
    """The bytes are no protobuf message; `truncated` when the message needs more bytes than there are."""

    def __init__(self, message: str, *, truncated: bool) -> None:
        super().__init__(message)
        self.truncated = truncated


def cut(data: Buffer, file: Path) -> bytes:
    """The model in `data` with every large initializer's bytes replaced by a reference to them in `file`.

    Raises WireError where the framing is broken. The result still has to be parsed.
    """
    out = bytearray()
    for number, start, payload, end in fields(data, 0, len(data)):
        if number == MODEL_GRAPH and data[start] & 7 == _LEN and end - payload >= FAR_BYTES:
            graph = _cut_graph(data, payload, end, file)
            out += frame(MODEL_GRAPH, len(graph)) + graph
        else:
            out += data[start:end]
    return bytes(out)


def frame(number: int, length: int) -> bytes:
    """What stands before a length-delimited field's payload: tag and length."""
    return _varint(number << 3 | _LEN) + _varint(length)


def fields(data: Buffer, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in data[start:end]; raises WireError where there is none."""
    while start < end:
        tag, at = _read_varint(data, start, end)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise WireError(f"field number 0 at byte {start}", truncated=False)
        payload = at
        if kind == _LEN:
            length, payload = _read_varint(data, at, end)
            at = payload + length
        elif kind == _VARINT:
            _, at = _read_varint(data, at, end)
        elif kind == _I64:
            at += 8
        elif kind == _I32:
            at += 4
        else:
            raise WireError(f"wire type {kind} at byte {start}", truncated=False)
        if at > end:
            raise WireError(f"the field at byte {start} ends {at - end} bytes after its message", truncated=True)
        yield number, start, payload, at
        start = at


def _cut_graph(data: Buffer, start: int, end: int, file: Path) -> bytes:
    out = bytearray()
    for number, begin, payload, stop in fields(data, start, end):
        far = None
        if number == GRAPH_INITIALIZER and data[begin] & 7 == _LEN and stop - payload >= FAR_BYTES:
            far = _cut_tensor(data, payload, stop, file)
        if far is None:
            out += data[begin:stop]
        else:
            out += frame(GRAPH_INITIALIZER, len(far)) + far
    return bytes(out)


def _cut_tensor(data: Buffer, start: int, end: int, file: Path) -> bytes | None:
    """The tensor with its raw data left in the file, or None to read it whole."""
    rest = bytearray()
    raw: list[tuple[int, int]] = []
    for number, begin, payload, stop in fields(data, start, end):
        if number == TENSOR_RAW_DATA:
            raw.append((payload, stop))
        elif stop - begin >= FAR_BYTES:
            return None  # values in a typed field: a rare form, left to protobuf
        else:
            rest += data[begin:stop]
    if len(raw) != 1:
        return None
    tensor = TensorProto.FromString(bytes(rest))
    ((payload, stop),) = raw
    if stop - payload < FAR_BYTES or tensor.data_type in _READ_TYPES or tensor.external_data:
        return None
    put_far(tensor, Span(file, payload, stop - payload))
    return bytes(tensor.SerializeToString(deterministic=True))


def _read_varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= end:
            raise WireError(f"the number at byte {at} is cut off", truncated=True)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= 70:
            raise WireError(f"a number of more than 64 bits at byte {at}", truncated=False)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
