"""One form for one graph: an order that follows from the graph alone, and names that stay apart on every toolchain.

The order is depth first from the outputs, inputs in turn, so it depends neither on the order of the file nor on names.
What no output needs is left out. Names of graph inputs and outputs never change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto

from qnn.errors.graphs import InvalidGraph
from qnn.prepare.prepared import Change
from qnn.prepare.weights import subgraphs

# QNN tools turn every other character of a name into "_"; two names that become one would clash there.
_NOT_SAFE = re.compile(r"[^0-9A-Za-z_]")


def sort_graph(model: ModelProto) -> None:
    """Put nodes, initializers and value infos into canonical order, in place, and drop what no output needs.

    Raises InvalidGraph (QF413) for names made twice or never, and for circles.
    """
    graph = model.graph
    order = _needed_nodes(graph)
    used = [name for node in order for name in _uses(node)] + [value.name for value in graph.output]
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    infos = {value.name: value for value in graph.value_info}
    made = [name for node in order for name in node.output if name]
    _replace(graph.initializer, [initializers[name] for name in dict.fromkeys(used) if name in initializers])
    _replace(graph.value_info, [infos[name] for name in made if name in infos])
    for node in order:
        _replace(node.attribute, sorted(node.attribute, key=lambda attribute: str(attribute.name)))
    _replace(graph.node, order)


def settle_names(model: ModelProto) -> list[Change]:
    """Give every node a name, and every node and inner tensor one that stays unique in QNN's alphabet, in place.

    Expects canonical order and a graph without subgraphs.
    """
    graph = model.graph
    changes = []
    taken: set[str] = set()
    for node in graph.node:
        wanted = node.name or f"{node.op_type}_{next((name for name in node.output if name), '')}"
        name = _free(wanted, taken)
        if node.name and name != node.name:
            changes.append(Change("renamed-node", node.name, f"now {name}: the name was not unique"))
        node.name = name
    renames = _tensor_renames(graph)
    changes += [Change("renamed-tensor", old, f"now {new}: the name was not unique") for old, new in renames.items()]
    for node in graph.node:
        _replace_names(node.input, renames)
        _replace_names(node.output, renames)
    for named in (*graph.initializer, *graph.value_info):
        named.name = renames.get(named.name, named.name)
    return changes


def unused_inputs(model: ModelProto) -> tuple[str, ...]:
    """Graph inputs that no node and no output uses, in graph order."""
    used = {name for node in model.graph.node for name in _uses(node)} | {value.name for value in model.graph.output}
    return tuple(value.name for value in model.graph.input if value.name not in used)


def constant_outputs(model: ModelProto) -> tuple[str, ...]:
    """Graph outputs that do not depend on any input, in graph order. Expects canonical order."""
    from_input = {value.name for value in model.graph.input}
    for node in model.graph.node:
        if not from_input.isdisjoint(_uses(node)):
            from_input.update(node.output)
    return tuple(value.name for value in model.graph.output if value.name not in from_input)


def _needed_nodes(graph: GraphProto) -> list[NodeProto]:
    producers = _producers(graph)
    given = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    given |= {sparse.values.name for sparse in graph.sparse_initializer}
    order: list[NodeProto] = []
    begun: set[int] = set()
    done: set[int] = set()
    for value in graph.output:
        if value.name not in producers and value.name not in given:
            raise _invalid(f"output {value.name!r} is made by no node")
        if value.name in given or producers[value.name] in begun:
            continue
        stack = [_enter(graph, producers[value.name], begun)]
        while stack:
            index, names = stack[-1]
            name = next(names, None)
            if name is None:
                done.add(index)
                order.append(graph.node[index])
                stack.pop()
            elif name in producers:
                needed = producers[name]
                if needed not in begun:
                    stack.append(_enter(graph, needed, begun))
                elif needed not in done:
                    raise _invalid(f"nodes form a circle through tensor {name!r}")
            elif name not in given:
                raise _invalid(f"node {graph.node[index].name!r} uses {name!r}, which nothing makes")
    return order


def _enter(graph: GraphProto, index: int, begun: set[int]) -> tuple[int, Iterator[str]]:
    begun.add(index)
    return index, iter(_uses(graph.node[index]))


def _producers(graph: GraphProto) -> dict[str, int]:
    """Which node makes each tensor; raises InvalidGraph when a name is given twice."""
    givers = [("input", value.name) for value in graph.input]
    givers += [("initializer", tensor.name) for tensor in graph.initializer]
    seen: dict[str, str] = {}
    for what, name in givers:
        if name in seen and (seen[name], what) != ("input", "initializer"):
            raise _invalid(f"{name!r} is the name of two {what}s")
        seen[name] = what
    producers: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in seen or name in producers):
                raise _invalid(f"tensor {name!r} is made twice, the second time by node {node.name!r}")
            if name:
                producers[name] = index
    return producers


def _uses(node: NodeProto) -> list[str]:
    """The tensors of its own scope that a node needs: its inputs, and what its subgraphs take from outside."""
    return [name for name in node.input if name] + [name for graph in subgraphs(node) for name in _taken(graph)]


def _taken(graph: GraphProto) -> list[str]:
    """The names a subgraph uses and does not make."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {sparse.values.name for sparse in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    used = [name for node in graph.node for name in _uses(node)] + [value.name for value in graph.output]
    return [name for name in used if name not in own]


def _tensor_renames(graph: GraphProto) -> dict[str, str]:
    taken = {_NOT_SAFE.sub("_", value.name) for value in (*graph.input, *graph.output)}
    border = {value.name for value in (*graph.input, *graph.output)}
    names = [tensor.name for tensor in graph.initializer]
    names += [name for node in graph.node for name in node.output if name]
    renames = {}
    for name in names:
        if name not in border:
            free = _free(name, taken)
            if free != name:
                renames[name] = free
    return renames


def _free(wanted: str, taken: set[str]) -> str:
    """`wanted`, or with the first number behind it that keeps it apart from all names before it, in QNN's alphabet."""
    name, number = wanted, 0
    while _NOT_SAFE.sub("_", name) in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(_NOT_SAFE.sub("_", name))
    return name


def _replace_names(names: Any, renames: dict[str, str]) -> None:
    for index, name in enumerate(names):
        if name in renames:
            names[index] = renames[name]


def _replace(field: Any, messages: Sequence[Any]) -> None:
    """Set a repeated field to other messages, which may be its own: they outlive their removal."""
    kept = list(messages)
    del field[:]
    field.extend(kept)


def _invalid(why: str) -> InvalidGraph:
    return InvalidGraph(why, remedy="run onnx.checker.check_model on the file and mend the exporter or script")
