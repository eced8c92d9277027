"""Rules of checks and exports: the Python functions they call exist, and what checks gate exists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qnn.errors.model import Kind, Problem
from qnn.model.document import KeyPath
from qnn.model.nearest import suggest
from qnn.model.python_files import PythonFile
from qnn.model.rules.base import Rule
from qnn.model.rules.subject import Subject
from qnn.model.text import short

# What the functions of a model are called with, always by keyword.
ARGUMENTS = {
    "data": ("graph", "inputs", "sources", "count"),
    "metric": ("graph", "inputs", "outputs", "reference", "sources"),
    "export": ("bucket", "sources"),
    "chain feed": ("graph", "turn", "inputs", "runs", "sources"),
    "chain metric": ("runs", "reference", "sources"),
}


@dataclass(frozen=True)
class _Entry:
    """A function that model.yaml names as FILE:FUNCTION, in a file that is there."""

    key: str  # one of ARGUMENTS
    at: KeyPath
    path: str
    function: str
    file: PythonFile


def _entries(subject: Subject) -> Iterator[_Entry]:
    for at in subject.functions:
        path, _, function = (subject.text(*at) or "").rpartition(":")
        if path in subject.python:
            key = " ".join(str(step) for step in at[1:]) if at[0] == "checks" else str(at[-1])
            yield _Entry(key, at, path, function, subject.python[path])


class IsPython(Rule):
    """What: A Python file beside model.yaml is not Python: it has a syntax error.

    Why: The build would fail when it runs the file. Lint parses the file and never runs it.

    Mend: Correct the line named; `python -m py_compile FILE` shows the same error.
    """

    id = "QF150"
    title = "a Python file with a syntax error"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for path, file in subject.python.items():
            if file.fault is not None:
                place = subject.beside(path, file.fault.line, file.fault.column)
                yield cls.problem(place, f"not Python: {short(file.fault.message)}", "correct it")


class HasFunction(Rule):
    """What: The Python file has no function of the name that `checks.data`, `checks.metric`, `checks.chain` or a
    graph's `export` gives.

    Why: The build would fail when it calls it.

    Mend: Correct the name after the colon, or write the function at the top level of the file.
    """

    id = "QF151"
    title = "a function that does not exist"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for entry in _entries(subject):
            known = entry.file.functions
            if entry.function not in known and entry.file.fault is None:
                remedy = suggest(entry.function, known, "correct the name, or write the function")
                message = f'"{short(entry.path)}" has no function "{short(entry.function)}"'
                yield cls.problem(subject.at_value(*entry.at), message, remedy)


class TakesArguments(Rule):
    """What: The function of `checks.data`, `checks.metric`, `checks.chain` or a graph's `export` does not take what it
    will be called with, or needs more.

    Why: It is called by keyword: `samples(graph=, inputs=, sources=, count=)`,
    `evaluate(graph=, inputs=, outputs=, reference=, sources=)`, `encoder(bucket=, sources=)`, and for a chain
    `feed(graph=, turn=, inputs=, runs=, sources=)` and `evaluate(runs=, reference=, sources=)`. Anything else is a
    TypeError in the middle of a build.

    Mend: Write exactly these parameters: `def samples(*, graph, inputs, sources, count):`.
    """

    id = "QF152"
    title = "a function with other parameters"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for entry in _entries(subject):
            function = entry.file.functions.get(entry.function)
            if function is None:
                continue  # not there, or bound by an import or assignment that cannot be looked into
            given = ARGUMENTS[entry.key]
            lacks = [name for name in given if name not in function.accepts and not function.open]
            extra = sorted(function.needs - set(given))
            faults = [f"does not take {', '.join(lacks)}"] if lacks else []
            faults += [f"needs {', '.join(extra)}, which it is not given"] if extra else []
            if faults:
                place = subject.beside(entry.path, function.line, function.column)
                signature = f"def {entry.function}(*, {', '.join(given)})"
                yield cls.problem(place, f"{short(entry.function)} {' and '.join(faults)}", f"write {signature}")


class KnownGraph(Rule):
    """What: `checks.outputs`, `checks.metrics` or `checks.ranges` names a graph that does not stand under `graphs`.

    Why: What it says would never be applied.

    Mend: Correct the name.
    """

    id = "QF153"
    title = "a gate on a graph that does not exist"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        known = dict.fromkeys(subject.keys("graphs"))
        for key in ("outputs", "metrics", "ranges"):
            for graph in subject.keys("checks", key):
                if known and graph not in known:
                    remedy = suggest(graph, known, "correct the name, or add the graph")
                    place = subject.at_key("checks", key, graph)
                    yield cls.problem(place, f'there is no graph "{short(graph)}"', remedy)


class MetricIsGated(Rule):
    """What: There is a task metric and no gate on what it returns.

    Why: The values are measured and shown, but a model that got the task wrong would pass.

    Mend: Add `checks.metrics`: `equal` for what must stay the same, or `min`, `max` or `max_drop`.
    """

    id = "QF155"
    title = "a metric without gates"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        if subject.has("checks", "metric") and not subject.has("checks", "metrics"):
            place = subject.at_key("checks", "metric")
            yield cls.problem(place, "the metric is measured and not gated", "add checks.metrics")


class ChainHasSteps(Rule):
    """What: There is `checks.chain`, and only one graph that is run once.

    Why: A chain is what leads from one graph to the next. With one graph and one round its function is never called,
    so the check would say nothing that the graph's own check has not said.

    Mend: Delete `checks.chain`, or give `rounds` for a graph that is fed with its own results.
    """

    id = "QF156"
    title = "a chain of one step"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        steps = len(subject.keys("graphs")) * (subject.number("checks", "chain", "rounds") or 1)
        if subject.has("checks", "chain") and steps == 1:
            place = subject.at_key("checks", "chain")
            message = "the chain has one step, so its function is never called"
            yield cls.problem(place, message, "delete it, or add rounds")
