"""The files a report is made of, from disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from qnn.errors.report import UnreadableReport
from qnn.report.document import KIND, Report, Unreadable
from qnn.report.gather import About, Gathered, clip_texts, gather, read_document
from qnn.report.planned import Planned, read_plan
from qnn.report.strict import bounded, parse, read_report, unreadable

# A document of one job with 1,000 chips is below 2 MB; a plan of 1,000 models and all chips has 30 MB.
_DOCUMENT_BYTES = 64 << 20


def load(files: Sequence[Path], plan: Path | None, lint: Path | None, about: About) -> Report:
    """The report of all files; folders stand for the JSON files in them. What cannot be read is named in it."""
    found = list(_files(files))
    if len(found) == 1 and plan is None and lint is None:
        again = _again(found[0], about)
        if again is not None:
            return again
    parts = [_part(path) for path in [*found, *([] if lint is None else [lint])]]
    planned: Planned | None = None
    if plan is not None:
        try:
            planned = read_plan(clip_texts(parse(_lenient(plan), plan.name, constant=_nothing), plan.name), plan.name)
        except UnreadableReport as error:
            parts.append(_named(plan, error))
    return gather(parts, planned, about)


def _files(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        if path.is_dir():
            yield from sorted(inner for inner in path.rglob("*.json") if not inner.is_dir())
        else:
            yield path


def _again(path: Path, about: About) -> Report | None:
    """The report in the file, or None when it holds something else."""
    try:
        raw = _lenient(path)
        if parse(raw, path.name, constant=_nothing).get("kind") != KIND:
            return None
    except UnreadableReport:
        return None
    report = read_report(raw, path.name)
    return dataclasses.replace(report, commit=about.commit or report.commit, run_url=about.run_url or report.run_url)


def _part(path: Path) -> Gathered:
    try:
        return read_document(parse(_lenient(path), path.name, constant=_nothing), path.name)
    except UnreadableReport as error:
        return _named(path, error)


def _named(path: Path, error: UnreadableReport) -> Gathered:
    return Gathered(unreadable=(Unreadable(path.name, error.message.removeprefix(f"{path.name}: ")),))


def _lenient(path: Path) -> bytes:
    """The file's bytes; here the caller chose the file, so links and pipes are fine."""
    try:
        with path.open("rb") as file:
            return bounded(file, _DOCUMENT_BYTES, path.name)
    except OSError as error:
        raise unreadable(path.name, error.strerror or "cannot be read") from None


def _nothing(name: str) -> None:
    """NaN and infinities, which a build of wrong numbers may print, are no numbers to show."""
