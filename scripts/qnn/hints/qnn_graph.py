"""The QNN graph that the compiler made, from its JSON dump and its operator trace. Pure.

Of onnxruntime-qnn 2.7.0 (QAIRT 2.51), measured: with `dump_json_qnn_graph` the provider writes a file a graph; its
`graph` has `nodes` (name → type, input_names, output_names, scalar_params) and `tensors` (name → dims, data_type,
type). Operators and tensors are in QNN's form: layouts are NHWC, weights of Conv2d HWIO, of FullyConnected [out, in].
The trace gives the ONNX nodes of each operator by its name; what the compiler put in by itself has none of the model.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from qnn.localize.trace import qnn_ops

# Qnn_TensorType_t: what the application writes, and what it reads.
_APP_WRITE, _APP_READ = 0, 1


@dataclass(frozen=True)
class QnnNode:
    """One QNN operator; `nodes` are the ONNX nodes it was made of, none for what the compiler put in."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]
    flags: tuple[str, ...] = ()  # scalar parameters that are true, such as transpose_in1

    def __str__(self) -> str:
        return self.nodes[-1] if self.nodes else self.name


@dataclass(frozen=True)
class QnnGraph:
    """Operators by name, and the dimensions of every tensor; `inputs` and `outputs` are the application's."""

    nodes: tuple[QnnNode, ...] = ()
    dims: Mapping[str, tuple[int, ...]] | None = None
    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Dimensions, empty where they are not known."""
        return (self.dims or {}).get(tensor, ())

    def elements(self, tensor: str) -> int:
        """How many elements; 0 where the dimensions are not known."""
        shape = self.shape(tensor)
        return prod(shape) if shape else 0

    def of_node(self, node: str) -> tuple[QnnNode, ...]:
        """The operators that an ONNX node took part in."""
        return self._by_node.get(node, ())

    @cached_property
    def _by_node(self) -> Mapping[str, tuple[QnnNode, ...]]:
        found: dict[str, tuple[QnnNode, ...]] = {}
        for op in self.nodes:
            for node in op.nodes:
                found[node] = (*found.get(node, ()), op)
        return found


def qnn_graph(dump: str, trace: str, onnx_nodes: Collection[str]) -> QnnGraph:
    """The graph; an empty one where the dump is missing or not what this version knows."""
    try:
        graph = json.loads(dump)["graph"]
        sources = _sources(trace, onnx_nodes)
        nodes = tuple(_node(name, entry, sources.get(name, ())) for name, entry in graph["nodes"].items())
        tensors = graph["tensors"]
        return QnnGraph(
            nodes=nodes,
            dims={name: tuple(int(dim) for dim in entry["dims"]) for name, entry in tensors.items()},
            inputs=frozenset(name for name, entry in tensors.items() if entry["type"] == _APP_WRITE),
            outputs=frozenset(name for name, entry in tensors.items() if entry["type"] == _APP_READ),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return QnnGraph()


def _node(name: str, entry: Any, nodes: tuple[str, ...]) -> QnnNode:
    flags = tuple(
        parameter
        for parameter, value in sorted(entry.get("scalar_params", {}).items())
        if isinstance(value, dict) and any(v is True or v == 1 for v in value.values())
    )
    return QnnNode(name, str(entry["type"]), tuple(entry["input_names"]), tuple(entry["output_names"]), nodes, flags)


def _sources(trace: str, onnx_nodes: Collection[str]) -> dict[str, tuple[str, ...]]:
    """ONNX nodes by the QNN operator's name."""
    names = [
        str(entry.get("dst_name", ""))
        for graph in json.loads(trace or "{}").get("subgraph_traces", [])
        for entry in graph.get("op_mappings", [])
    ]
    return {name: op.nodes for name, op in zip(names, qnn_ops(trace, onnx_nodes), strict=True)}
