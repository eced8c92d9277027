"""Which tensors of a traced file are results of which calls of PyTorch. A job for a child.

Two exports of one module name and number their nodes differently as soon as one has more outputs. What a tensor is
computed from says which it is: operator, attributes, weights and inputs, back to the inputs of the graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto, TensorProto


@dataclass(frozen=True)
class PlaceRequest:
    """`traced` is a further export of the module of `model`, whose outputs after the first `outputs` are the results of
    its calls. ``call-NNNNN.npy`` in `tensors` becomes NNNNN.npy, NNNNN being the place of its name in `names` (JSON).
    """

    model: Path
    traced: Path
    outputs: int
    names: Path
    tensors: Path


@dataclass(frozen=True)
class Placed:
    """A tensor of the file, and the number of the first call that gives it."""

    name: str
    call: int


def place(request: PlaceRequest) -> tuple[Placed, ...]:
    """See PlaceRequest. A call whose result the file does not compute just so is left out."""
    import onnx  # noqa: PLC0415 - the parent imports this module

    names: list[str] = json.loads(request.names.read_text(encoding="utf-8"))
    own = _prints(onnx.load(request.model).graph)
    traced = onnx.load(request.traced).graph
    theirs = _prints(traced)
    calls: dict[bytes, int] = {}
    for number, output in enumerate(traced.output[request.outputs :]):
        if output.name in theirs:
            calls.setdefault(theirs[output.name], number)
    placed = []
    for number, name in enumerate(names):
        call = calls.pop(own[name], None) if name in own else None
        if call is not None:
            (request.tensors / f"call-{call:05d}.npy").rename(request.tensors / f"{number:05d}.npy")
            placed.append(Placed(name, call))
    return tuple(placed)


def _prints(graph: GraphProto) -> dict[str, bytes]:
    """A digest of how each tensor comes about. None for what depends on a node with a graph of its own inside: such a
    graph knows tensors around it by names alone.
    """
    known = {"": b""}
    known |= {value.name: _digest("input", value.name) for value in graph.input}
    known |= {tensor.name: _of_tensor(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if any(name not in known for name in node.input) or any(item.HasField("g") for item in node.attribute):
            continue
        if node.op_type == "Identity":
            known[node.output[0]] = known[node.input[0]]
        elif node.op_type == "Constant" and node.attribute[0].name == "value":
            known[node.output[0]] = _of_tensor(node.attribute[0].t)
        else:
            known |= dict(_of_node(node, [known[name] for name in node.input]))
    return known


def _of_node(node: NodeProto, inputs: list[bytes]) -> Iterator[tuple[str, bytes]]:
    attributes = sorted((item.name, _of_attribute(item)) for item in node.attribute)
    whole = _digest("node", node.domain, node.op_type, inputs, attributes)
    yield from ((name, _digest("output", whole, number)) for number, name in enumerate(node.output) if name)


def _of_attribute(attribute: AttributeProto) -> bytes:
    return _of_tensor(attribute.t) if attribute.HasField("t") else attribute.SerializeToString(deterministic=True)


def _of_tensor(tensor: TensorProto) -> bytes:
    """Of its values: a weight and a constant are the same thing."""
    from onnx import numpy_helper  # noqa: PLC0415

    array = numpy_helper.to_array(tensor)
    return _digest("tensor", tensor.data_type, array.shape, hashlib.sha256(array.tobytes()).digest())


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()
