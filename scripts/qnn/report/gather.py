"""From the documents of a run's jobs to one report. Pure.

The documents come from jobs that may have been killed, and that ran code of whoever opened the pull request. So each
is read strictly, its texts are cut to a length that can be shown, and one that cannot be read is named in the report.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from qnn.report.document import (
    KIND,
    SCHEMA_VERSION,
    Failure,
    Finding,
    Graph,
    Hint,
    Lint,
    Remark,
    Report,
    Result,
    Skip,
    Unreadable,
    Verdict,
    tally_of,
    variants_of,
    worst_first,
)
from qnn.report.escape import clip
from qnn.report.planned import Planned
from qnn.report.strict import MAX_TEXT, structure, unreadable

_SCHEMA = 1
HINTS_KIND = "qnn-forge-hints"
_LINES = 20
_LINE = 300


@dataclass(frozen=True)
class Gathered:
    """What the documents say, before it is put in order."""

    results: tuple[Result, ...] = ()
    skipped: tuple[Skip, ...] = ()
    lints: tuple[Lint, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    hints: tuple[Hint, ...] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class About:
    """What the report is about: the full commit, and the page of the run. Both may be unknown."""

    commit: str | None = None
    run_url: str | None = None


def gather(parts: Iterable[Gathered], planned: Planned | None, about: About) -> Report:
    """One report. Of two results for one bundle the later counts: a job that ran again replaces its first answer."""
    parts = tuple(parts)
    folders = planned.folders if planned is not None else {}
    by_name: dict[tuple[str, ...], Result] = {}
    for part in parts:
        for result in part.results:
            by_name[result.model, result.bucket, result.precision, result.soc] = result
    if planned is not None and not planned.plan.dry_run:
        for missing in planned.targets:
            by_name.setdefault((missing.model, missing.bucket, missing.precision, missing.soc), missing)
    results = [_with_path(result, folders) for result in by_name.values()]
    return Report(
        schema=SCHEMA_VERSION,
        kind=KIND,
        commit=about.commit,
        run_url=about.run_url,
        tally=tally_of(results),
        variants=variants_of(results),
        results=worst_first(results),
        skipped=_merge_skips(skip for part in parts for skip in part.skipped),
        lint=_merge_lints([lint for part in parts for lint in part.lints]),
        plan=None if planned is None else planned.plan,
        unreadable=tuple(sorted((bad for part in parts for bad in part.unreadable), key=lambda bad: bad.name)),
        hints=_merge_hints(hint for part in parts for hint in part.hints),
        remarks=_merge_remarks(remark for part in parts for remark in part.remarks),
    )


def read_document(document: dict[str, Any], name: str) -> Gathered:
    """What `qnn-forge build`, `hints` or `lint` printed as JSON. Raises UnreadableReport (QF920)."""
    document = clip_texts(document, name)
    if document.get("kind") == HINTS_KIND:
        _require_schema(document, name)
        return Gathered(
            hints=tuple(_hint(hint) for hint in structure(document, _HintsDocument, name, extra=True).hints)
        )
    if "problems" in document:
        return Gathered(lints=(_lint(structure(document, _LintDocument, name, extra=True)),))
    if "targets" not in document:
        raise unreadable(name, "neither results of a build nor findings of lint")
    _require_schema(document, name)
    build = structure(document, _BuildDocument, name, extra=True)
    return Gathered(
        results=tuple(_result(target) for target in build.targets),
        skipped=tuple(Skip(skip.variant, skip.reason, (skip.soc,)) for skip in build.skipped),
        remarks=tuple(replace(remark, text=clip(remark.text, 4 * _LINE)) for remark in build.remarks),
    )


def _require_schema(document: dict[str, Any], name: str) -> None:
    if document.get("schema") != _SCHEMA:
        raise unreadable(name, f"its schema version is not {_SCHEMA}")


def clip_texts(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The document with every text cut to what a report may hold. Raises UnreadableReport (QF920) when too deep."""
    try:
        clipped: dict[str, Any] = _clipped(document)
    except RecursionError:
        raise unreadable(name, "nested too deeply") from None
    return clipped


def _clipped(value: Any) -> Any:
    if isinstance(value, str):
        return clip(value, MAX_TEXT)
    if isinstance(value, list):
        return [_clipped(item) for item in value]
    if isinstance(value, dict):
        return {key: _clipped(item) for key, item in value.items()}
    return value


@dataclass(frozen=True)
class _BuildGraph:
    name: str
    size: int
    cosine: float | None
    max_abs: float | None
    metric: str


@dataclass(frozen=True)
class _BuildError:
    id: str
    message: str
    remedy: str
    details: tuple[str, ...] = ()
    place: str | None = None
    log: str | None = None


@dataclass(frozen=True)
class _BuildTarget:
    model: str
    version: str
    bucket: str
    precision: str
    soc: str
    verdict: Verdict
    reused: bool
    seconds: float
    archive: str | None
    sha256: str | None
    graphs: tuple[_BuildGraph, ...]
    error: _BuildError | None


@dataclass(frozen=True)
class _BuildSkip:
    variant: str
    soc: str
    reason: str


@dataclass(frozen=True)
class _BuildDocument:
    targets: tuple[_BuildTarget, ...]
    skipped: tuple[_BuildSkip, ...] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class _LintProblem:
    id: str
    kind: Literal["error", "hint"]
    path: str
    message: str
    remedy: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class _LintDocument:
    errors: int
    hints: int
    models: int
    problems: tuple[_LintProblem, ...] = field(default=())


@dataclass(frozen=True)
class _HintsDocument:
    hints: tuple[Hint, ...]


def _result(target: _BuildTarget) -> Result:
    return Result(
        model=target.model,
        version=target.version,
        path=target.model,
        bucket=target.bucket,
        precision=target.precision,
        soc=target.soc,
        verdict=target.verdict,
        reused=target.reused,
        seconds=target.seconds,
        archive=None if target.archive is None else _file_name(target.archive),
        sha256=target.sha256,
        graphs=tuple(
            Graph(graph.name, graph.size, graph.cosine, graph.max_abs, clip(graph.metric, _LINE))
            for graph in target.graphs
        ),
        failure=None if target.error is None else _failure(target.error),
    )


def _failure(error: _BuildError) -> Failure:
    left = len(error.details) - _LINES
    details = [clip(line, _LINE) for line in error.details[:_LINES]]
    return Failure(
        id=error.id,
        message=clip(error.message, 4 * _LINE),
        remedy=clip(error.remedy, 4 * _LINE),
        details=(*details, f"{left} more lines") if left > 0 else tuple(details),
        # A path of the machine that built says nothing elsewhere; a relative one names a file of the repository.
        place=_file_name(error.place) if error.place is not None and error.place.startswith("/") else error.place,
        log=None if error.log is None else _file_name(error.log),
    )


def _file_name(path: str) -> str:
    return posixpath.basename(path) or path


def _with_path(result: Result, folders: dict[str, str]) -> Result:
    path = folders.get(result.model, result.path)
    # The command line finds models/NAME by its name.
    return replace(result, path=result.model if path == f"models/{result.model}" else path)


def _lint(document: _LintDocument) -> Lint:
    findings = [
        Finding(
            id=problem.id,
            kind=problem.kind,
            path=problem.path,
            line=problem.line,
            column=problem.column,
            message=clip(problem.message, 4 * _LINE),
            remedy=clip(problem.remedy, 4 * _LINE),
        )
        for problem in document.problems
    ]
    return Lint(document.errors, document.hints, document.models, tuple(findings))


def _merge_lints(lints: Sequence[Lint]) -> Lint | None:
    if not lints:
        return None
    findings = sorted(
        (finding for lint in lints for finding in lint.findings),
        key=lambda finding: (finding.kind, finding.path, finding.line or 0, finding.column or 0, finding.id),
    )
    return Lint(
        errors=sum(lint.errors for lint in lints),
        hints=sum(lint.hints for lint in lints),
        models=sum(lint.models for lint in lints),
        findings=tuple(findings),
    )


def _hint(hint: Hint) -> Hint:
    return replace(
        hint,
        found=clip(hint.found, 2 * _LINE),
        change=clip(hint.change, 4 * _LINE),
        details=tuple(clip(line, _LINE) for line in hint.details[:_LINES]),
    )


def _merge_hints(hints: Iterable[Hint]) -> tuple[Hint, ...]:
    """By id, then model and graph; what two jobs found in the same graph is said once."""
    by_name = {(hint.id, hint.model, hint.bucket, hint.precision, hint.graph, hint.found): hint for hint in hints}
    return tuple(by_name[key] for key in sorted(by_name))


def _merge_remarks(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """By what they are about; what the jobs of several chips said is said once."""
    return tuple(sorted(set(remarks), key=lambda remark: (remark.subject, remark.stage, remark.text)))


def _merge_skips(skips: Iterable[Skip]) -> tuple[Skip, ...]:
    chips: dict[tuple[str, str], set[str]] = {}
    for skip in skips:
        chips.setdefault((skip.variant, skip.reason), set()).update(skip.socs)
    return tuple(Skip(*named, tuple(sorted(socs))) for named, socs in sorted(chips.items()))
