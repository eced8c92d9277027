"""Replace an If whose condition is a constant by the branch that runs.

Exporters write an If for every `squeeze` and every check of a shape; once shapes are fixed, folding makes their
conditions constants. (onnxsim's own pass for this, 0.8.1, breaks on an If inside a branch.)
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.weights import is_far, subgraphs


def resolve_branches(model: ModelProto) -> list[Change]:
    """Put the running branch in the place of every If of the main graph with a constant condition, in place.

    Nodes are left in an order that need not be topological; an If inside a branch is there for the next call.
    """
    graph = model.graph
    conditions = {tensor.name: tensor for tensor in graph.initializer if not is_far(tensor)}
    taken = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    taken |= {name for node in graph.node for name in node.output}
    changes = []
    kept: list[NodeProto] = []
    for node in list(graph.node):
        condition = conditions.get(node.input[0]) if node.op_type == "If" and node.input else None
        if condition is None:
            kept.append(node)
            continue
        runs = bool(onnx.numpy_helper.to_array(condition).any())
        kept += _unwrap(model, node, _branch(node, "then_branch" if runs else "else_branch"), taken)
        changes.append(Change("resolved-branch", node.name or node.output[0], f"its condition is {runs}"))
    if changes:
        del graph.node[:]
        graph.node.extend(kept)
    return changes


def _branch(node: NodeProto, name: str) -> GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == name)


def _unwrap(model: ModelProto, node: NodeProto, branch: GraphProto, taken: set[str]) -> list[NodeProto]:
    """The branch's nodes under names that are free in the main graph; its initializers are added there."""
    made = {name for inner in branch.node for name in inner.output if name}
    renames: dict[str, str] = {}
    passed_on: list[NodeProto] = []
    for output, value in zip(node.output, branch.output, strict=True):
        if value.name in made and value.name not in renames:
            renames[value.name] = output
        else:  # a tensor from outside or a constant, or the same tensor a second time
            source = value.name
            passed_on.append(onnx.helper.make_node("Identity", [source], [output], name=f"{output}_passed_on"))
    for name in (*made, *(tensor.name for tensor in branch.initializer)):
        if name not in renames and name in taken:
            renames[name] = _free(f"{node.output[0]}/{name}", taken)
        taken.add(renames.get(name, name))
    nodes = [*branch.node, *passed_on]
    for inner in nodes:
        _rename(inner, renames)
    for tensor in branch.initializer:
        added = model.graph.initializer.add()
        added.CopyFrom(tensor)
        added.name = renames.get(tensor.name, tensor.name)
    return nodes


def _free(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted


def _rename(node: NodeProto, renames: dict[str, str]) -> None:
    _rename_in(node.input, renames)
    _rename_in(node.output, renames)
    for graph in subgraphs(node):
        for inner in graph.node:
            _rename(inner, renames)
        for value in graph.output:
            value.name = renames.get(value.name, value.name)


def _rename_in(names: Any, renames: dict[str, str]) -> None:
    for index, name in enumerate(names):
        if name in renames:
            names[index] = renames[name]
