"""Write a model whose large weights are still in other files (see qnn.prepare.weights), copying them once.

A model up to INLINE_BYTES is one file. Beyond, the far weights go to ``<name>.onnx.data``: a protobuf message cannot
exceed 2 GB, and long before that the compiler's memory gains from it, because ONNX Runtime maps external data instead
of parsing it (BERT base, 435 MB, QAIRT 2.51: 1.1 GB peak and 5.1 s CPU to compile, against 1.6 GB and 5.45 s inline).
Both forms are the same bytes for the same model, wherever its weights came from.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from onnx import GraphProto, ModelProto, TensorProto

from qnn.prepare.weights import Span, is_far, put_far, span_of
from qnn.prepare.wire import GRAPH_INITIALIZER, MODEL_GRAPH, TENSOR_RAW_DATA, frame

INLINE_BYTES = 100_000_000
# Weights start at multiples of this, so that a runtime can map them from the file.
_ALIGNMENT = 4096
_CHUNK = 8 << 20


def write_model(model: ModelProto, name: str, folder: Path, *, inline_bytes: int = INLINE_BYTES) -> tuple[str, ...]:
    """Write ``<name>.onnx``, and ``<name>.onnx.data`` when all weights together exceed `inline_bytes`.

    Returns the file names. Near weights stay in the ``.onnx`` in either case, so every shape can be read from it.
    """
    far = [tensor for tensor in model.graph.initializer if is_far(tensor)]
    file = f"{name}.onnx"
    if model.ByteSize() + sum(span_of(tensor).length for tensor in far) <= inline_bytes:
        _write_inline(model, folder / file)
        return (file,)
    data = f"{file}.data"
    _write_external(model, folder / file, folder / data)
    return (file, data)


def _write_inline(model: ModelProto, path: Path) -> None:
    """One message: what is near as protobuf writes it, then each far weight with its bytes from its file."""
    rest, graph, far = _apart(model)
    body = graph.SerializeToString(deterministic=True)
    heads = [(_head(tensor), span_of(tensor)) for tensor in far]
    sizes = [len(head) + len(frame(TENSOR_RAW_DATA, span.length)) + span.length for head, span in heads]
    total = len(body) + sum(len(frame(GRAPH_INITIALIZER, size)) + size for size in sizes)
    with path.open("wb") as out:
        out.write(rest.SerializeToString(deterministic=True))
        out.write(frame(MODEL_GRAPH, total))
        out.write(body)
        for (head, span), size in zip(heads, sizes, strict=True):
            out.write(frame(GRAPH_INITIALIZER, size) + head + frame(TENSOR_RAW_DATA, span.length))
            _copy(span, out)


def _write_external(model: ModelProto, path: Path, data: Path) -> None:
    written = ModelProto()
    written.CopyFrom(model)
    with data.open("wb") as out:
        for tensor in written.graph.initializer:
            if is_far(tensor):
                out.write(b"\0" * (-out.tell() % _ALIGNMENT))
                offset, span = out.tell(), span_of(tensor)
                _copy(span, out)
                put_far(tensor, Span(Path(data.name), offset, span.length))
    path.write_bytes(written.SerializeToString(deterministic=True))


def _apart(model: ModelProto) -> tuple[ModelProto, GraphProto, list[TensorProto]]:
    """The model without its graph, the graph without its far weights, and those."""
    rest = ModelProto()
    rest.CopyFrom(model)
    graph = GraphProto()
    graph.CopyFrom(rest.graph)
    rest.ClearField("graph")
    del graph.initializer[:]
    graph.initializer.extend(tensor for tensor in model.graph.initializer if not is_far(tensor))
    return rest, graph, [tensor for tensor in model.graph.initializer if is_far(tensor)]


def _head(tensor: TensorProto) -> bytes:
    head = TensorProto()
    head.CopyFrom(tensor)
    head.ClearField("external_data")
    head.ClearField("data_location")
    return bytes(head.SerializeToString(deterministic=True))


def _copy(span: Span, out: BinaryIO) -> None:
    """Append the bytes of a span; the kernel copies, so they never enter this process."""
    out.flush()
    with span.file.open("rb") as source:
        done = 0
        while done < span.length:
            count = os.sendfile(out.fileno(), source.fileno(), span.offset + done, min(_CHUNK, span.length - done))
            if count == 0:
                raise EOFError(f"{span.file.name} ends before byte {span.offset + span.length}")
            done += count
