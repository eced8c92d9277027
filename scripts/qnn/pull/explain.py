"""A miss in words: one error for all models that have no file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qnn.errors.pull import NotBuiltYet, NothingFits
from qnn.index.document import VersionIndex
from qnn.pull.run import Found
from qnn.pull.wish import Verdict
from qnn.sources.protocol import printable


def miss(founds: Sequence[Found]) -> NothingFits | NotBuiltYet | None:
    """The error for the models without a file, or None when each has one.

    What cannot be had at all comes before what can be built; all reasons and all nearest matches are details.
    """
    missing = [found for found in founds if found.choice.file is None]
    if not missing:
        return None
    never = [found for found in missing if found.choice.verdict is Verdict.NO]
    first = (never or missing)[0]
    commands = [found.choice.build for found in missing if found.choice.build]
    lines = [printable(line) for found in missing for line in _lines(found, headline=found is not first)]
    message = printable(first.choice.reasons[0])
    if never:
        there = "`qnn-forge search`" if first.document is None else f"`qnn-forge info {first.wish.model}`"
        remedy = "ask for one of the nearest matches" if first.choice.near else f"see {there} for what there is"
        lines += [f"build: {command}" for command in commands]
        return NothingFits(message, remedy=remedy, details=lines)
    return NotBuiltYet(message, remedy=f"build it: {' && '.join(commands)}", details=lines)


def fallback_lines(document: VersionIndex) -> Iterator[str]:
    """The float ONNX models that run on the CPU of a device without a context binary."""
    for fallback in document.fallback:
        member = f", file {fallback.member}" if fallback.member else ""
        graph = f" {fallback.graph}" if fallback.graph else ""
        yield (
            f"float model of {document.model}{graph} for the CPU: {fallback.kind} {fallback.address}{member}, "
            f"sha256 {fallback.sha256}"
        )


def _lines(found: Found, *, headline: bool) -> Iterator[str]:
    choice = found.choice
    yield from choice.reasons if headline else choice.reasons[1:]
    for near in choice.near:
        yield f"near: {near}"
    if found.document is not None:
        yield from fallback_lines(found.document)
