"""Write out every Loop and Scan whose number of rounds is known.

A Loop with a constant trip count and no other end, and a Scan, whose rounds are the length of what it scans, are the
nodes of their body so many times over. Exporters of recurrent layers and of scripted `for` loops write both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from qnn.prepare import shapes
from qnn.prepare.branches import free_name, rename
from qnn.prepare.prepared import Change
from qnn.prepare.weights import is_far

# More nodes than this are not written out: compiling them would take minutes.
_MOST_NODES = 4000
_AXES_ARE_INPUTS = 13


@dataclass(frozen=True)
class _Rounds:
    """A Loop or Scan taken apart: `states` and `scanned` are tensors of the graph; `axes`, `reversed_` of what is
    scanned, `out_axes`, `out_reversed` of what is put together, each one entry a tensor.
    """

    count: int
    states: Sequence[str]
    scanned: Sequence[str] = ()
    axes: Sequence[int] = ()
    reversed_: Sequence[int] = ()
    out_axes: Sequence[int] = ()
    out_reversed: Sequence[int] = ()


def unroll(model: ModelProto) -> list[Change]:
    """Put the rounds in the place of every Loop and Scan of the main graph that can be written out, in place.

    Nodes are left in an order that need not be topological; a Loop inside a body is there for the next call.
    """
    graph = model.graph
    changes = []
    kept: list[NodeProto] = []
    writer = _Writer(model)
    for node in list(graph.node):
        rounds = writer.rounds_of(node)
        if rounds is None:
            kept.append(node)
            continue
        kept += writer.written_out(node, rounds)
        changes.append(Change("unrolled", node.name or node.output[0], f"its body is written out {rounds.count} times"))
    if changes:
        del graph.node[:]
        graph.node.extend(kept)
    return changes


class _Writer:
    """Names and constants of one graph, and the nodes that replace a Loop or Scan of it."""

    def __init__(self, model: ModelProto) -> None:
        self._graph = model.graph
        self._opset = max((int(o.version) for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer if not is_far(tensor)}
        infos = (*model.graph.input, *model.graph.value_info, *model.graph.output)
        self._dims = {value.name: shapes.dims_of(value) for value in infos}
        self._dims |= {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        self._taken = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer}
        self._taken |= {name for node in model.graph.node for name in node.output}

    def rounds_of(self, node: NodeProto) -> _Rounds | None:
        """The rounds of a Loop or Scan that can be written out; None for any other node."""
        rounds = None
        if node.op_type == "Loop":
            rounds = self._of_loop(node)
        elif node.op_type == "Scan" and self._opset >= _SCAN_WITHOUT_BATCH:
            rounds = self._of_scan(node)
        if rounds is None or not 0 < rounds.count * max(1, len(_body(node).node)) <= _MOST_NODES:
            return None
        return rounds

    def written_out(self, node: NodeProto, rounds: _Rounds) -> list[NodeProto]:
        """The nodes of all rounds, and those that make the outputs."""
        body, at = _body(node), node.output[0]
        extra = 2 if node.op_type == "Loop" else 0  # the number of the round, and whether it goes on
        shared = self._share_constants(body, at)
        states = list(rounds.states)
        gathered: list[list[str]] = [[] for _ in body.output[len(states) + extra // 2 :]]
        nodes: list[NodeProto] = []
        for number in range(rounds.count):
            names = dict(shared)
            names.update(zip((value.name for value in body.input[extra:]), states, strict=False))
            if extra:
                names[body.input[0].name] = self._constant(f"{at}/round", numpy.array(number, numpy.int64))
                names[body.input[1].name] = self._constant(f"{at}/goes_on", numpy.array(True))
            for place, value in enumerate(body.input[extra + len(states) :]):
                nodes.append(self._element(rounds, place, number, at))
                names[value.name] = nodes[-1].output[0]
            nodes += self._round(body, names, at)
            made = [names.get(value.name, value.name) for value in body.output[extra // 2 :]]
            states = made[: len(states)]
            for pieces, name in zip(gathered, made[len(states) :], strict=True):
                pieces.append(name)
        ends = zip(states, node.output, strict=False)
        nodes += [helper.make_node("Identity", [state], [name]) for state, name in ends if name]
        for place, (pieces, name) in enumerate(zip(gathered, node.output[len(states) :], strict=False)):
            if name:
                nodes += self._joined(rounds, place, pieces, name)
        return nodes

    def _of_loop(self, node: NodeProto) -> _Rounds | None:
        count = self._scalar(node.input[0]) if node.input[0] else None
        goes_on = self._scalar(node.input[1]) if len(node.input) > 1 and node.input[1] else True
        if count is None or not goes_on or not _never_ends(_body(node)):
            return None
        outputs = len(_body(node).output) - 1 - len(node.input[2:])
        return _Rounds(int(count), list(node.input[2:]), out_axes=[0] * outputs, out_reversed=[0] * outputs)

    def _of_scan(self, node: NodeProto) -> _Rounds | None:
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        number = int(given["num_scan_inputs"])
        states, scanned = list(node.input[: len(node.input) - number]), list(node.input[len(node.input) - number :])
        outputs = len(_body(node).output) - len(states)
        axes = given.get("scan_input_axes", [0] * number)
        dims = self._dims.get(scanned[0])
        length = None if dims is None or not dims else dims[axes[0]]
        if not isinstance(length, int):
            return None
        return _Rounds(
            length,
            states,
            scanned,
            axes,
            given.get("scan_input_directions", [0] * number),
            given.get("scan_output_axes", [0] * outputs),
            given.get("scan_output_directions", [0] * outputs),
        )

    def _scalar(self, name: str) -> float | None:
        tensor = self._constants.get(name)
        return None if tensor is None else float(numpy_helper.to_array(tensor).reshape(-1)[0])

    def _element(self, rounds: _Rounds, place: int, number: int, at: str) -> NodeProto:
        """One element of what is scanned, without the axis it is scanned along."""
        position = rounds.count - 1 - number if rounds.reversed_[place] else number
        index = self._constant(f"{at}/element", numpy.array(position, numpy.int64))
        output = self._fresh(f"{at}/scanned")
        return helper.make_node("Gather", [rounds.scanned[place], index], [output], axis=rounds.axes[place])

    def _round(self, body: GraphProto, names: dict[str, str], at: str) -> Iterator[NodeProto]:
        """The body's nodes under names of their own; `names` learns what they make."""
        for node in body.node:
            names.update((name, self._fresh(f"{at}/{name}")) for name in node.output if name)
        for node in body.node:
            copy = NodeProto()
            copy.CopyFrom(node)
            rename(copy, names)
            copy.name = copy.output[0]
            yield copy

    def _joined(self, rounds: _Rounds, place: int, pieces: Sequence[str], name: str) -> Iterator[NodeProto]:
        axis = rounds.out_axes[place]
        wide = []
        for piece in pieces:
            wide.append(self._fresh(f"{name}/row"))
            if self._opset >= _AXES_ARE_INPUTS:
                axes = self._constant(f"{name}/axis", numpy.array([axis], numpy.int64))
                yield helper.make_node("Unsqueeze", [piece, axes], [wide[-1]])
            else:
                yield helper.make_node("Unsqueeze", [piece], [wide[-1]], axes=[axis])
        yield helper.make_node("Concat", wide[::-1] if rounds.out_reversed[place] else wide, [name], axis=axis)

    def _share_constants(self, body: GraphProto, at: str) -> dict[str, str]:
        """The body's initializers, once for all rounds; returns their names in the graph."""
        names = {}
        for tensor in body.initializer:
            added = self._graph.initializer.add()
            added.CopyFrom(tensor)
            added.name = names[tensor.name] = self._fresh(f"{at}/{tensor.name}")
        return names

    def _constant(self, wanted: str, array: numpy.ndarray) -> str:
        name = self._fresh(wanted)
        self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def _fresh(self, wanted: str) -> str:
        name = free_name(wanted, self._taken)
        self._taken.add(name)
        return name


# Before opset 9 Scan had a batch axis and lengths.
_SCAN_WITHOUT_BATCH = 9


def _body(node: NodeProto) -> GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == "body")


def _never_ends(body: GraphProto) -> bool:
    """Whether a Loop's body passes on the condition it gets, or one that is true."""
    wanted, given = body.output[0].name, body.input[1].name
    makers = {name: node for node in body.node for name in node.output}
    while wanted in makers and makers[wanted].op_type == "Identity":
        wanted = makers[wanted].input[0]
    if wanted == given:
        return True
    held: Mapping[str, TensorProto] = {tensor.name: tensor for tensor in body.initializer}
    tensor = held.get(wanted)
    node = makers.get(wanted)
    if node is not None and node.op_type == "Constant" and node.attribute[0].name == "value":
        tensor = node.attribute[0].t
    return tensor is not None and bool(onnx.numpy_helper.to_array(tensor).all())
