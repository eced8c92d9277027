"""Rules of what a graph is changed into before it is compiled: rewrites that exist, outputs that are left."""

from __future__ import annotations

from collections.abc import Iterator

from qnn.errors.model import Problem
from qnn.model.nearest import suggest
from qnn.model.rules.base import Rule
from qnn.model.rules.subject import Subject
from qnn.model.text import short
from qnn.prepare.rewrites import names


class KnownRewrite(Rule):
    """What: `rewrites` of a graph switches a rewrite that does not exist.

    Why: The switch would change nothing, though the author thinks it does.

    Mend: Correct the name; docs/rewrites.md lists all rewrites and what each does.
    """

    id = "QF145"
    title = "a rewrite that does not exist"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        known = dict.fromkeys(names())
        for graph in subject.keys("graphs"):
            for name in subject.keys("graphs", graph, "rewrites"):
                if name not in known:
                    place = subject.at_key("graphs", graph, "rewrites", name)
                    remedy = suggest(name, known, "docs/rewrites.md lists all rewrites")
                    yield cls.problem(place, f'there is no rewrite "{short(name)}"', remedy)


class GatedOutput(Rule):
    """What: `checks.outputs` has a gate on an output that a graph cut by `outputs` does not have.

    Why: `outputs` says which tensors the graph gives. What is not among them is cut away, and its gate would never be
    applied.

    Mend: Correct the name, or add the tensor to the graph's `outputs`.
    """

    id = "QF146"
    title = "a gate on an output that is cut away"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for graph in subject.keys("graphs"):
            kept = {name for _, name in subject.texts("graphs", graph, "outputs")}
            for output in subject.keys("checks", "outputs", graph):
                if kept and output not in kept:
                    place = subject.at_key("checks", "outputs", graph, output)
                    remedy = suggest(output, kept, "add it to the graph's outputs, or delete the gate")
                    message = f'"{short(output)}" is not among the outputs of {short(graph)}'
                    yield cls.problem(place, message, remedy)


class CutExport(Rule):
    """What: A graph that is exported from PyTorch has `outputs`.

    Why: `outputs` cuts a file that cannot be changed. An exported graph is held to its module, output by output, so
    the module itself should give what is wanted.

    Mend: Return these tensors from the module's `forward`, and delete `outputs`.
    """

    id = "QF147"
    title = "an exported graph that is cut"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for graph in subject.keys("graphs"):
            if subject.has("graphs", graph, "export") and subject.has("graphs", graph, "outputs"):
                place = subject.at_key("graphs", graph, "outputs")
                message = f"{short(graph)} is exported and cut"
                yield cls.problem(place, message, "return the tensors from the module, and delete outputs")
