"""Replace an If whose condition is a constant by the branch that runs, and any other by both and a choice.

Exporters write an If for every `squeeze` and every check of a shape; once shapes are fixed, folding makes their
conditions constants. (onnxsim's own pass for this, 0.8.1, breaks on an If inside a branch.) A condition that the data
decides chooses among two results, where both have one shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from qnn.errors.graphs import InvalidGraph
from qnn.prepare import shapes
from qnn.prepare.canonical import sort_graph
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


_WHERE = 9  # the opset that has it


def choose_branches(model: ModelProto) -> tuple[ModelProto, list[Change]]:
    """The model with both branches of every If of the main graph computed and one of their results chosen by Where.

    An If whose branches make results of different or unknown shapes is left, and so is one inside a branch, for the
    next call. Nodes are left in an order that need not be topological.
    """
    changes: list[Change] = []
    if max((int(o.version) for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1) < _WHERE:
        return model, changes
    for name in [node.output[0] for node in model.graph.node if node.op_type == "If"]:
        chosen = _with_choice(model, name)
        if chosen is not None:
            node = next(node for node in model.graph.node if node.output and node.output[0] == name)
            changes.append(Change("both-branches", node.name or name, "both are computed, and the data chooses"))
            model = chosen
    return model, changes


def _with_choice(model: ModelProto, name: str) -> ModelProto | None:
    """A copy in which the If that makes the tensor `name` is both branches and a choice; None where it cannot be."""
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    taken = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    taken |= {made for node in graph.node for made in node.output}
    node = next(node for node in graph.node if node.output and node.output[0] == name)
    nodes = [other for other in graph.node if other is not node]
    pairs = []
    sides = ("then_branch", "else_branch")
    for output in node.output:
        pairs.append([free_name(f"{output}/{side}", taken) for side in sides])
        taken.update(pairs[-1])
    for number, side in enumerate(sides):
        one = NodeProto()
        one.CopyFrom(node)
        one.output[:] = [pair[number] for pair in pairs]
        nodes += _unwrap(copy, one, _branch(node, side), taken)
    choices = [
        onnx.helper.make_node("Where", [node.input[0], *pair], [output], name=f"{output}_chosen")
        for output, pair in zip(node.output, pairs, strict=True)
    ]
    del graph.node[:]
    graph.node.extend([*nodes, *choices])
    sort_graph(copy)
    try:
        inferred = shapes.infer(copy)
    except InvalidGraph:
        return None
    known = {value.name: value for value in (*inferred.graph.value_info, *inferred.graph.output)}
    return copy if all(_alike(known, pair) for pair in pairs) else None


def _alike(known: Mapping[str, onnx.ValueInfoProto], pair: Sequence[str]) -> bool:
    """Whether two tensors have one type and one fixed shape of at least one axis, so that Where takes one or the other;
    ONNX Runtime has no Where of booleans.
    """
    if not all(name in known for name in pair):
        return False
    types = {known[name].type.tensor_type.elem_type for name in pair}
    dims = {shapes.dims_of(known[name]) for name in pair}
    sizes = next(iter(dims))
    fixed = len(dims) == 1 and bool(sizes) and all(isinstance(size, int) for size in sizes or ())
    return len(types) == 1 and TensorProto.BOOL not in types and fixed


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
            renames[name] = free_name(f"{node.output[0]}/{name}", taken)
        taken.add(renames.get(name, name))
    nodes = [*branch.node, *passed_on]
    for inner in nodes:
        rename(inner, renames)
    for tensor in branch.initializer:
        added = model.graph.initializer.add()
        added.CopyFrom(tensor)
        added.name = renames.get(tensor.name, tensor.name)
    return nodes


def free_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, or a name like it that is not taken."""
    while wanted in taken:
        wanted += "_"
    return wanted


def rename(node: NodeProto, renames: Mapping[str, str]) -> None:
    """Give what a node, and every node inside it, reads and makes other names, in place."""
    _rename_in(node.input, renames)
    _rename_in(node.output, renames)
    for graph in subgraphs(node):
        for inner in graph.node:
            rename(inner, renames)
        for value in graph.output:
            value.name = renames.get(value.name, value.name)


def _rename_in(names: Any, renames: Mapping[str, str]) -> None:
    for index, name in enumerate(names):
        if name in renames:
            names[index] = renames[name]
