"""The search for the first wrong tensor. Knows how to look only through `Look`, so it is tested without a compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from qnn.errors.base import ForgeError
from qnn.localize.facts import Cause, Culprit, Measured, Measurement, Step, Stretch, Unprobed
from qnn.localize.plan import Plan
from qnn.localize.trace import of_nodes

FP16_MAX = 65504.0
# Culprits of one search: what is behind the first is looked for with true values, as often as this.
_CULPRITS = 4
# A bisection ends at a stretch this short, whose tensors are then probed at once.
_SHORT = 24
# More nodes than this are bisected when nobody said how to search.
MANY = 300


class Look(Protocol):
    """Compile a stretch, run it on true values, compare."""

    def __call__(self, stretch: Stretch, outputs: Sequence[str] = ()) -> Measurement:
        """`outputs`: tensors made in the stretch (none: those later nodes use). Raises a ForgeError when it cannot."""


@dataclass
class Search:
    """One search in one graph. `say` is told what is done before each step."""

    plan: Plan
    look: Look
    say: Callable[[str], None]
    steps: list[Step] = field(default_factory=list)
    unprobed: list[Unprobed] = field(default_factory=list)
    probed: int = 0
    spread_out: bool = False

    def run(self, wrong: Sequence[str], *, bisect: bool) -> tuple[Culprit, ...]:
        """The culprits in order; each later one is wrong though all before it was right.

        `wrong` are the graph's wrong outputs.
        """
        found: list[Culprit] = []
        start = 0
        while wrong and len(found) < _CULPRITS:
            culprit = self._first(Stretch(start, self.plan.whole.stop), wrong, bisect=bisect)
            if culprit is None:
                break
            found.append(culprit)
            start = self._behind(culprit.seen)
            wrong = [output.tensor for output in culprit.rest if output.wrong]
        return tuple(found)

    def _first(self, stretch: Stretch, wrong: Sequence[str], *, bisect: bool) -> Culprit | None:
        """The first wrong tensor of a stretch that is wrong as a whole, or None when no part of it alone is."""
        narrow = self._narrowed(stretch, _SHORT) if bisect else stretch
        targets = () if narrow.stop < stretch.stop else wrong
        seen = self._probe(narrow, targets)
        if seen is not None:
            return self._culprit(seen, self.plan.maker(seen.tensor))
        if self.spread_out:
            return None
        # Looked at, every tensor is right: the probes changed what the compiler made. Cut without them.
        self.say("every tensor that can be looked at is right: cutting the graph in two instead")
        part = self._narrowed(narrow, 1)
        measured = self.look(part)
        worst = next((tensor for tensor in measured.tensors if tensor.wrong), None)
        return None if worst is None or part == self.plan.whole else self._culprit(worst, part)

    def _probe(self, stretch: Stretch, wanted: Sequence[str]) -> Measured | None:
        for batch in self.plan.batches(self.plan.probes(stretch, wanted)):
            for measured in self._batch(stretch, batch):
                order = {tensor.tensor: tensor for tensor in measured.tensors}
                first = next((order[name] for name in batch if name in order and order[name].wrong), None)
                if first is not None:
                    return first
        return None

    def _batch(self, stretch: Stretch, batch: Sequence[str]) -> Iterator[Measurement]:
        """The batch's measurements; a batch that does not compile is halved until the tensor to blame is left out."""
        self.say(f"looking at {len(batch)} tensors, {batch[0]} to {batch[-1]}")
        try:
            measured = self.look(Stretch(stretch.start, self.plan.maker(batch[-1]).stop), batch)
        except ForgeError as error:
            if len(batch) == 1:
                self.unprobed.append(Unprobed(batch[0], error.message))
                return
            half = len(batch) // 2
            yield from self._batch(stretch, batch[:half])
            yield from self._batch(stretch, batch[half:])
            return
        self.probed += len(batch)
        yield measured

    def _narrowed(self, stretch: Stretch, short: int) -> Stretch:
        """A part of a stretch that is wrong on true values, as short as `short` nodes or as cuts allow.

        Sets `spread_out` when both halves of a part are right and only the part is not.
        """
        while stretch.length > short:
            middle = self.plan.middle(stretch)
            if middle is None:
                return stretch
            for half in (Stretch(stretch.start, middle), Stretch(middle, stretch.stop)):
                if self._is_wrong(half):
                    stretch = half
                    break
            else:
                self.spread_out = True
                return stretch
        return stretch

    def _is_wrong(self, stretch: Stretch) -> bool:
        self.say(f"looking at nodes {stretch.start} to {stretch.stop - 1} alone")
        try:
            measured = self.look(stretch)
        except ForgeError as error:
            nodes = self.plan.nodes(stretch)
            self.unprobed.append(Unprobed(f"{nodes[0].name} to {nodes[-1].name}", error.message))
            return False
        worst = min((tensor.cosine for tensor in measured.tensors), default=1.0)
        self.steps.append(Step(stretch.start, stretch.stop, worst, measured.wrong))
        return measured.wrong

    def _culprit(self, seen: Measured, made_by: Stretch) -> Culprit:
        nodes = self.plan.nodes(made_by)
        self.say(f"{seen.tensor}: {seen.wrong}; looking at {nodes[-1].name} alone")
        try:
            measured = self.look(made_by, (seen.tensor,))
        except ForgeError as error:
            alone, cause, reason = None, Cause.UNKNOWN, error.message
            ops: tuple[str, ...] = ()
        else:
            (alone,) = measured.tensors
            cause, reason = (Cause.NODE if alone.wrong else Cause.INPUTS), ""
            ops = of_nodes(measured.ops, {node.name for node in nodes})
        return Culprit(seen.tensor, nodes, ops, seen, cause, alone, reason, self._rest(self._behind(seen)))

    def _behind(self, seen: Measured) -> int:
        """Where the graph behind a wrong tensor begins: what reads a value fp16 cannot hold is wrong with it."""
        return self.plan.past(seen.tensor) if seen.peak > FP16_MAX else self.plan.behind(seen.tensor)

    def _rest(self, start: int) -> tuple[Measured, ...]:
        """The graph's outputs when everything after a node gets true values; none where nothing is after it."""
        rest = Stretch(start, self.plan.whole.stop)
        made = {name for node in self.plan.nodes(rest) for name in node.outputs}
        outputs = [name for name in self.plan.survey.outputs if name in made]
        if not outputs:
            return ()
        self.say("looking at the rest of the graph on true values")
        try:
            return self.look(rest, outputs).tensors
        except ForgeError as error:
            self.unprobed.append(Unprobed(", ".join(outputs), f"on true values: {error.message}"))
            return ()
