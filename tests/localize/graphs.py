"""Surveys and a stand-in for the compiler: nodes that are known to be wrong, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qnn.errors.localize import ProbeFailed
from qnn.localize.facts import Measured, Measurement, NodeFacts, Stretch, Survey


def survey(nodes: Mapping[str, Sequence[str]], outputs: Sequence[str], size: int = 4) -> Survey:
    """A graph of nodes named as the one tensor each makes, from its inputs; all other names are graph inputs."""
    facts = tuple(NodeFacts(name, "Op", tuple(inputs), (name,)) for name, inputs in nodes.items())
    given = dict.fromkeys(name for inputs in nodes.values() for name in inputs if name not in nodes)
    return Survey(Path("graph.onnx"), facts, tuple(given), tuple(outputs), tuple((name, size) for name in nodes))


def chain(length: int) -> Survey:
    """x → n0 → n1 → …"""
    return survey({f"n{i}": [f"n{i - 1}" if i else "x"] for i in range(length)}, [f"n{length - 1}"])


def measured(tensor: str, wrong: str = "", *, peak: float = 1.0) -> Measured:
    """A tensor that is right, or wrong for a reason."""
    return Measured(tensor, (2, 3), 0.5 if wrong else 1.0, 0.0, 0.1, peak, 0, 0, wrong)


@dataclass
class FakeNpu:
    """Takes the place of a compile and run: tensors are wrong that a wrong node of the stretch leads to.

    `refused` tensors break the compile when they are made outputs; `peak` is every tensor's largest value.
    """

    survey: Survey
    wrong: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    peak: float = 1.0
    asked: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)

    def __call__(self, stretch: Stretch, outputs: Sequence[str] = ()) -> Measurement:
        self.asked.append((stretch.start, stretch.stop, tuple(outputs)))
        nodes = self.survey.nodes[stretch.start : stretch.stop]
        names = tuple(outputs) or self._used_later(stretch)
        if self.refused.intersection(outputs):
            raise ProbeFailed("refused", remedy="none")
        tainted: set[str] = set()
        for node in nodes:
            if node.name in self.wrong or tainted.intersection(node.inputs):
                tainted.update(node.outputs)
        return Measurement(
            tuple(measured(name, "cosine 0.5" if name in tainted else "", peak=self.peak) for name in names), ()
        )

    def _used_later(self, stretch: Stretch) -> tuple[str, ...]:
        later = {name for node in self.survey.nodes[stretch.stop :] for name in node.inputs} | {*self.survey.outputs}
        return tuple(node.name for node in self.survey.nodes[stretch.start : stretch.stop] if node.name in later)
