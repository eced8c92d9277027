"""All lint rules, and how they are run on a model."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType

from qnn.errors.model import Kind, Problem
from qnn.model.nearest import suggest
from qnn.model.rules import (
    addresses,
    checks,
    exports,
    graphs,
    identity,
    paths,
    rewrites,
    skips,
    sources,
    structure,
    syntax,
    targets,
)
from qnn.model.rules.base import Rule
from qnn.model.rules.subject import Subject

_MODULES = (syntax, structure, identity, sources, paths, addresses, graphs, exports, rewrites, targets, checks, skips)


def _of(module: ModuleType) -> Iterator[type[Rule]]:
    """The rules that a module defines; a base without an id is none."""
    for thing in vars(module).values():
        own = inspect.isclass(thing) and thing.__module__ == module.__name__
        if own and issubclass(thing, Rule) and "id" in vars(thing):
            yield thing


RULES: tuple[type[Rule], ...] = tuple(sorted((rule for m in _MODULES for rule in _of(m)), key=lambda rule: rule.id))


def check(subject: Subject) -> list[Problem]:
    """What all rules find in a model, without the hints that it skips with a reason."""
    found = [problem for rule in RULES for problem in rule.check(subject)]
    skipped = _skipped(subject)
    return [*(problem for problem in found if problem.id not in skipped), *_skips(subject, found)]


def _skipped(subject: Subject) -> frozenset[str]:
    hints = {rule.id for rule in RULES if rule.kind is Kind.HINT}
    return frozenset(name for _, name in _ids(subject) if name in hints)


def _ids(subject: Subject) -> Iterator[tuple[int, str]]:
    for index in range(subject.length("lint", "skip")):
        name = subject.text("lint", "skip", index, "id")
        if name is not None:
            yield index, name


def _skips(subject: Subject, found: Iterable[Problem]) -> Iterator[Problem]:
    """What is wrong with the skips themselves; it takes the findings of all rules to know."""
    rules = {rule.id: rule for rule in RULES}
    spoken = {problem.id for problem in found}
    for index, name in _ids(subject):
        place = subject.at_value("lint", "skip", index, "id")
        rule = rules.get(name)
        if rule is None:
            yield skips.KnownSkip.problem(
                place, f"no rule has the id {name}", suggest(name, rules, "qnn-forge explain lists all")
            )
        elif rule.kind is Kind.ERROR:
            yield skips.SkipIsHint.problem(place, f"{name} is an error", "mend what it says, and delete this entry")
        elif name not in spoken:
            yield skips.SkipIsNeeded.problem(place, f"{name} would say nothing", "delete this entry")
