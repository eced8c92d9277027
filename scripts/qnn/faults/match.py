"""Which entries of the table a prepared graph meets. Pure."""

from __future__ import annotations

from onnx import ModelProto

from qnn.faults.found import FoundFault
from qnn.faults.matchers import MATCHERS
from qnn.faults.table import load_faults
from qnn.prepare.rewrites.view import GraphView


def find_faults(model: ModelProto) -> tuple[FoundFault, ...]:
    """Every node that meets an entry with a matcher, in the table's order and then the graph's.

    Expects canonical order, unique node names and value infos with fixed shapes.
    """
    view = GraphView(model)
    met = [
        (fault.id, node, detail)
        for fault in load_faults()
        if fault.matcher is not None
        for node, detail in MATCHERS[fault.matcher](view)
    ]
    if not met:
        return ()
    reached = _outputs_of_nodes(model)
    return tuple(
        FoundFault(fault, str(node.name), str(node.op_type), detail, reached.get(str(node.name), ()))
        for fault, node, detail in met
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
