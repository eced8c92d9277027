"""Which QNN operators an ONNX graph became, read from the compiler's trace. Pure.

The trace of onnxruntime-qnn 2.7.0 (QAIRT 2.51), measured: `op_mappings` has an entry a QNN operator with its type
(`dst_qnn_op_type`) and `sources`, names of ONNX nodes and, where several were fused, of the tensors between them. The
layout transformation puts `_token_N` behind a node's name, and the fusions `_N`; Transposes that it put in have names
of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from qnn.localize.facts import QnnOp

_SUFFIX = re.compile(r"(?:_token_\d+|_\d+)$")


def qnn_ops(text: str, nodes: Collection[str]) -> tuple[QnnOp, ...]:
    """The QNN operators in the trace's order, none of a damaged trace. `nodes` are the ONNX nodes' names."""
    try:
        trace = json.loads(text) if text.strip() else {}
    except ValueError:
        return ()
    return tuple(
        QnnOp(
            str(entry.get("dst_qnn_op_type", "")),
            tuple(dict.fromkeys(name for source in _sources(entry) if (name := _original(source, nodes)))),
        )
        for entry in _mappings(trace)
    )


def of_nodes(ops: tuple[QnnOp, ...], nodes: Collection[str]) -> tuple[str, ...]:
    """The types of the QNN operators that some ONNX nodes became, each once, in order."""
    return tuple(dict.fromkeys(op.op for op in ops if not set(op.nodes).isdisjoint(nodes)))


def _mappings(trace: Any) -> Iterator[Any]:
    graphs = trace.get("subgraph_traces") if isinstance(trace, dict) else None
    for graph in graphs if isinstance(graphs, list) else ():
        found = graph.get("op_mappings") if isinstance(graph, dict) else None
        yield from (entry for entry in (found if isinstance(found, list) else ()) if isinstance(entry, dict))


def _sources(entry: Any) -> Iterator[str]:
    sources = entry.get("sources")
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, dict):
            yield str(source.get("name", ""))


def _original(name: str, nodes: Collection[str]) -> str | None:
    while name not in nodes:
        shorter = _SUFFIX.sub("", name)
        if shorter == name:
            return None
        name = shorter
    return name
