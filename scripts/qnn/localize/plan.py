"""Which tensors are looked at together, and where a graph is cut. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from qnn.localize.facts import NodeFacts, QnnOp, Stretch, Survey

# Probes of one compile. Each is one more output of the binary, held once by the emulator and once by the CPU.
BATCH_TENSORS = 48
BATCH_BYTES = 64 << 20
# Readers of a tensor that are further behind it than this many nodes are not taken together with its maker.
_NEAR = 8
_DEQUANTIZE = "DequantizeLinear"


class Plan:
    """A survey, and the QNN operators that the whole graph became.

    A tensor between two nodes of one QNN operator (Erf inside a GELU) does not exist on the NPU, and a probe there
    would break the operator up. In a quantized graph an operator is one with the DequantizeLinears before it and the
    QuantizeLinear behind it: what can be looked at is what the next DequantizeLinear gives, and cuts go between the
    two.
    """

    def __init__(self, survey: Survey, ops: Sequence[QnnOp] = ()) -> None:
        self.survey = survey
        self._sizes = dict(survey.sizes)
        self._inside = _inside(survey, ops)

    @property
    def whole(self) -> Stretch:
        """All nodes."""
        return Stretch(0, len(self.survey.nodes))

    def nodes(self, stretch: Stretch) -> tuple[NodeFacts, ...]:
        """The nodes of a stretch."""
        return self.survey.nodes[stretch.start : stretch.stop]

    def crossing(self, position: int) -> tuple[str, ...]:
        """The tensors that nodes before a position make and the rest uses, or that are outputs, in order."""
        return self._crossing[position]

    def probes(self, stretch: Stretch, wanted: Sequence[str] = ()) -> list[str]:
        """What can be looked at in a stretch, in order; with `wanted`, only what these tensors depend on."""
        needed = self._needed(stretch, wanted)
        return [
            name
            for node in self.nodes(stretch)
            for name in node.outputs
            if name in self._sizes and name not in self._inside and name in needed
        ]

    def batches(
        self, probes: Sequence[str], tensors: int = BATCH_TENSORS, size: int = BATCH_BYTES
    ) -> Iterator[tuple[str, ...]]:
        """Neighbours, so many and so large at most; a larger one is a batch of its own."""
        batch: list[str] = []
        held = 0
        for name in probes:
            if batch and (len(batch) == tensors or held + self._sizes[name] > size):
                yield tuple(batch)
                batch, held = [], 0
            batch.append(name)
            held += self._sizes[name]
        if batch:
            yield tuple(batch)

    def middle(self, stretch: Stretch) -> int | None:
        """Where to cut a stretch in two: near its middle, where few tensors cross; None where no cut is possible."""
        quarter = stretch.length // 4
        inner = range(stretch.start + max(1, quarter), stretch.stop - max(1, quarter) + 1)
        possible = [at for at in inner if stretch.start < at < stretch.stop and self._can_cut(at)]
        centre = (stretch.start + stretch.stop) / 2
        return min(possible, key=lambda at: (len(self.crossing(at)), abs(at - centre)), default=None)

    def maker(self, tensor: str) -> Stretch:
        """The nodes that make a tensor: one, or those that are one QNN operator with it."""
        nodes, last = self.survey.nodes, self._makers[tensor]
        start = last
        if nodes[last].op == _DEQUANTIZE:
            start = self._makers.get(nodes[last].inputs[0], last) if nodes[last].inputs else last
        while start > 0 and self._is_bound(nodes[start - 1]):
            start -= 1
        return Stretch(start, last + 1)

    def past(self, tensor: str) -> int:
        """The position after the last node that reads a tensor, or after its maker where that one is far away."""
        made = self.behind(tensor)
        last = max((at for at, node in enumerate(self.survey.nodes) if tensor in node.inputs), default=made - 1)
        return last + 1 if last + 1 - made <= _NEAR else made

    def behind(self, tensor: str) -> int:
        """Where the graph behind a tensor begins: a DequantizeLinear belongs to what reads it."""
        last = self._makers[tensor]
        return last if self.survey.nodes[last].op == _DEQUANTIZE else last + 1

    def _can_cut(self, at: int) -> bool:
        return not any(self._is_bound(self.survey.nodes[self._makers[name]]) for name in self.crossing(at))

    def _is_bound(self, node: NodeFacts) -> bool:
        """Whether a node cannot be apart from what reads it."""
        return node.op == _DEQUANTIZE or any(name in self._inside for name in node.outputs)

    def _needed(self, stretch: Stretch, wanted: Sequence[str]) -> set[str]:
        if not wanted:
            return {name for node in self.nodes(stretch) for name in node.outputs}
        needed = set(wanted)
        for node in reversed(self.nodes(stretch)):
            if needed.intersection(node.outputs):
                needed.update(node.inputs)
        return needed

    @cached_property
    def _makers(self) -> Mapping[str, int]:
        return {name: index for index, node in enumerate(self.survey.nodes) for name in node.outputs}

    @cached_property
    def _crossing(self) -> list[tuple[str, ...]]:
        last: dict[str, int] = {}
        for index, node in enumerate(self.survey.nodes):
            last.update(dict.fromkeys(node.inputs, index))
        last.update(dict.fromkeys(self.survey.outputs, len(self.survey.nodes)))
        alive: dict[str, None] = {}
        found: list[tuple[str, ...]] = [()]
        for index, node in enumerate(self.survey.nodes):
            alive = {name: None for name in (*alive, *node.outputs) if last.get(name, -1) > index}
            found.append(tuple(alive))
        return found


def _inside(survey: Survey, ops: Sequence[QnnOp]) -> frozenset[str]:
    """The tensors that never leave the QNN operator they are made in."""
    users: dict[str, set[str]] = {}
    for node in survey.nodes:
        for name in node.inputs:
            users.setdefault(name, set()).add(node.name)
    found: set[str] = set()
    for members in (set(op.nodes) for op in ops if len(op.nodes) > 1):
        found.update(
            name
            for node in survey.nodes
            if node.name in members and node.op != _DEQUANTIZE
            for name in node.outputs
            if name not in survey.outputs and name in users and users[name] <= members
        )
    return frozenset(found)
