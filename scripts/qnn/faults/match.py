"""Which patterns of known faults a prepared graph meets. Pure; what they mean is decided in judge.py."""

from __future__ import annotations

from onnx import ModelProto

from qnn.faults.found import FoundFault
from qnn.faults.matchers import MATCHERS
from qnn.prepare.rewrites.view import GraphView


def find_faults(model: ModelProto) -> tuple[FoundFault, ...]:
    """Every node that meets a pattern, in the order of MATCHERS and then the graph's.

    Expects canonical order, unique node names and value infos with fixed shapes.
    """
    view = GraphView(model)
    met = [(pattern, node, detail) for pattern, matcher in MATCHERS.items() for node, detail in matcher(view)]
    if not met:
        return ()
    reached = _outputs_of_nodes(model)
    return tuple(
        FoundFault(pattern, str(node.name), str(node.op_type), detail, reached.get(str(node.name), ()))
        for pattern, node, detail in met
    )


def _outputs_of_nodes(model: ModelProto) -> dict[str, tuple[str, ...]]:
    """The graph outputs that depend on each node, by the node's name."""
    outputs = [str(value.name) for value in model.graph.output]
    reached: dict[str, set[str]] = {name: {name} for name in outputs}
    found = {}
    for node in reversed(model.graph.node):
        own: set[str] = set()
        for name in node.output:
            own |= reached.get(name, set())
        found[str(node.name)] = tuple(name for name in outputs if name in own)
        for name in node.input:
            reached[name] = reached.get(name, set()) | own
    return found
