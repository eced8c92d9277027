"""Tensors whose bytes are in memory (near) or still in a file (far), and how to walk over all tensors of a model.

Far tensors use ONNX's own external-data fields, with an absolute path as location; that form exists only between
loading and writing, never in a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

_NARROW_BITS = {
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
    TensorProto.FLOAT4E2M1: 4,
    **{getattr(TensorProto, name): 2 for name in ("INT2", "UINT2") if hasattr(TensorProto, name)},
}


@dataclass(frozen=True)
class Span:
    """Bytes in a file."""

    file: Path
    offset: int
    length: int


def is_far(tensor: TensorProto) -> bool:
    """Whether the tensor's bytes are in a file."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def span_of(tensor: TensorProto) -> Span:
    """Where a far tensor's bytes are, as `put_far` left it."""
    facts = {entry.key: entry.value for entry in tensor.external_data}
    return Span(Path(facts["location"]), int(facts["offset"]), int(facts["length"]))


def put_far(tensor: TensorProto, span: Span) -> None:
    """Make the tensor one whose bytes are in a file."""
    tensor.ClearField("raw_data")
    del tensor.external_data[:]
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", str(span.file)), ("offset", str(span.offset)), ("length", str(span.length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def bring_near(tensor: TensorProto) -> None:
    """Read a far tensor's bytes into memory; raises OSError, and EOFError when the file is too short."""
    span = span_of(tensor)
    with span.file.open("rb") as stream:
        stream.seek(span.offset)
        data = stream.read(span.length)
    if len(data) < span.length:
        raise EOFError(f"{span.file.name} ends after {len(data)} of {span.length} bytes of {tensor.name!r}")
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = data


def byte_size(tensor: TensorProto) -> int:
    """Bytes of the tensor's raw data, from its shape and type; raises KeyError for types without a raw form."""
    count = prod(tensor.dims)
    bits = _NARROW_BITS.get(tensor.data_type)
    if bits is None:
        return int(count * tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    return int((count * bits + 7) // 8)


def make_raw(tensor: TensorProto) -> None:
    """Give a near tensor the raw form, so that equal tensors are equal bytes however they were written."""
    if tensor.HasField("raw_data") or tensor.data_type == TensorProto.STRING or is_far(tensor):
        return
    raw = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name)
    if raw.data_type == tensor.data_type:
        tensor.CopyFrom(raw)


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor of a model: initializers, attributes, in subgraphs and functions too."""
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        yield from _node_tensors(function.node)
        yield from _attribute_tensors(function.attribute_proto)


def subgraphs(node: NodeProto) -> list[GraphProto]:
    """The graphs held by a node's attributes (branches, loop bodies), without those inside them."""
    return [
        graph
        for attribute in node.attribute
        for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs)
    ]


def graphs_of(nodes: Iterable[NodeProto]) -> Iterator[GraphProto]:
    """Every graph held by the attributes of `nodes`, at any depth."""
    for node in nodes:
        for graph in subgraphs(node):
            yield graph
            yield from graphs_of(graph.node)


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        yield from _attribute_tensors(node.attribute)


def _attribute_tensors(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for sparse in ([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []) + list(
            attribute.sparse_tensors
        ):
            yield from (sparse.values, sparse.indices)
        for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            yield from _graph_tensors(graph)
