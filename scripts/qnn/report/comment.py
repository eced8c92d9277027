"""The comment on a pull request: what matters first, at most 65,536 characters, and never Markdown that is cut. Pure.

Models with failures come first, at the first level of detail with which all of them fit; when none does, as many as
fit, worst first. What room is left is for the models that went well. The rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qnn.report.blocks import (
    FINDINGS_HEAD,
    ICONS,
    built_words,
    chip_names,
    cosine,
    cost_words,
    count,
    error,
    fate,
    finding_row,
    graph_rows,
    headline,
    hint_line,
    hints_words,
    lint_words,
    made_of,
    megabytes,
    name,
    remark_line,
    trouble_block,
    troubles,
    verdict_words,
    words,
)
from qnn.report.document import Report, Result, Tally, Variant
from qnn.report.escape import link
from qnn.report.fill import fill, table, utf16
from qnn.report.origin import Origin

# The line by which the comment is found again, and GitHub's limit for a comment's text.
MARKER = "<!-- qnn-forge report -->"
LIMIT = 65_536

# Shares of the comment; the sections of the models have the rest.
_FINDINGS, _OVERVIEW, _REASONS, _REMARKS, _SKIPPED, _HINTS, _TAIL = 16_000, 12_000, 3_000, 4_000, 4_000, 4_000, 1_000
_OPEN = 3
_UNREADABLE = 5


@dataclass(frozen=True)
class _Level:
    """How much of each model is shown: groups of failures, and bundles that went well."""

    troubles: int
    rows: int


_LEVELS = (_Level(1_000, 10_000), _Level(20, 100), _Level(10, 40), _Level(5, 20), _Level(3, 8), _Level(1, 0))
_GOOD = _Level(0, 100)


@dataclass(frozen=True)
class _Section:
    """One model: its variants and the results the report holds, worst first."""

    model: str
    variants: tuple[Variant, ...]
    results: tuple[Result, ...]

    @property
    def tally(self) -> Tally:
        """Over all variants."""
        own = [variant.tally for variant in self.variants]
        return Tally(
            failed=sum(tally.failed for tally in own),
            missing=sum(tally.missing for tally in own),
            unverified=sum(tally.unverified for tally in own),
            ok=sum(tally.ok for tally in own),
            reused=sum(tally.reused for tally in own),
        )


def comment(report: Report, origin: Origin, limit: int = LIMIT) -> str:
    """The comment's text, at most `limit` UTF-16 units (30,000 or more), beginning with the marker line."""
    head = _head(report, origin)
    tail = _tail(report)
    left = limit - utf16(head) - utf16(tail) - _TAIL
    sections = _sections(report)
    bad = [section for section in sections if section.tally.failed or section.tally.missing]
    good = [section for section in sections if not section.tally.failed and not section.tally.missing]
    written = _first_fitting(bad, origin, left)
    if len(written) == len(bad):
        left -= sum(utf16(text) + 1 for text in written)
        written += fill((_section(section, _GOOD, origin, opened=False) for section in good), left, utf16)
    shown = sum(section.tally.total for section in (*bad, *good)[: len(written)])
    missing = report.tally.total - shown
    more = [f"**{count(missing, 'more bundle')}** of models not shown here: {_see(origin)}."] if missing > 0 else []
    return "\n".join(part for part in (head, *written, *more, tail) if part)


def _first_fitting(sections: Sequence[_Section], origin: Origin, budget: int) -> tuple[str, ...]:
    """The sections at the first level with which all fit, or those that fit at the last."""
    opened = len(sections) <= _OPEN
    for level in _LEVELS:
        kept = fill((_section(section, level, origin, opened=opened) for section in sections), budget, utf16)
        if len(kept) == len(sections):
            break
    return kept


def _head(report: Report, origin: Origin) -> str:
    parts = [
        f"{MARKER}\n### {headline(report)}\n",
        _about(report, origin),
        _plan(report),
        _unreadable(report),
        _lint(report, origin),
        _overview(report),
    ]
    return "\n".join(part for part in parts if part)


def _unreadable(report: Report) -> str:
    shown = report.unreadable[:_UNREADABLE]
    lines = [f"- ⛔ {name(bad.name)} could not be read: {words(bad.reason, 200)}" for bad in shown]
    left = len(report.unreadable) - len(shown)
    more = [f"- and {left:,} more"] if left else []
    return "\n".join([*lines, *more]) + "\n" if lines else ""


def _about(report: Report, origin: Origin) -> str:
    said = []
    if origin.commit is not None:
        commit = f"Commit {link(name(origin.commit[:12]), origin.commit_url)}"
        said.append(commit if origin.branch is None else f"{commit} of {name(origin.branch)}")
    if report.tally.total:
        said.append(built_words(report.tally))
    if origin.run_url is not None:
        said.append(link("the run", origin.run_url))
        if report.tally.made:
            said.append(link("bundles and logs", origin.artifacts_url))
    return " · ".join(said) + "\n" if said else ""


def _plan(report: Report) -> str:
    if report.plan is None:
        return ""
    reasons = fill((f"- {words(reason)}" for reason in report.plan.reasons), _REASONS, utf16)
    left = len(report.plan.reasons) - len(reasons)
    rest = [f"- {count(left, 'more reason')}"] if left else []
    summary = f"Planned: {cost_words(report.plan)}"
    if not reasons:
        return f"{summary}\n"
    return _details(summary, "\n".join([*reasons, *rest]))


def _lint(report: Report, origin: Origin) -> str:
    lint = report.lint
    if lint is None or not lint.errors + lint.hints:
        return ""
    rows = [finding_row(finding, origin) for finding in lint.findings]
    rows_cut = lint.errors + lint.hints - len(rows)
    filled = table(FINDINGS_HEAD, rows, f"findings: {_see(origin)}", _FINDINGS, utf16)
    if rows_cut > 0 and filled:
        filled += f"\n\n{count(rows_cut, 'more finding')}: {_see(origin)}."
    return _details(f"Lint: {lint_words(lint)}", filled, opened=bool(lint.errors))


def _overview(report: Report) -> str:
    buckets = any(variant.bucket != "default" for variant in report.variants)
    head = "| | model | precision |" + (" bucket |" if buckets else "") + " bundles | binaries | worst cosine |\n"
    head += "|---|---|---|" + ("---|" if buckets else "") + "---|--:|--:|"
    rows = [
        f"| {ICONS[variant.tally.worst]} | {name(variant.model)} | {name(variant.precision)} |"
        + (f" {name(variant.bucket)} |" if buckets else "")
        + f" {made_of(variant.tally)} | {megabytes(variant.size)} | {cosine(variant.cosine)} |"
        for variant in report.variants
    ]
    text = table(head, rows, "variants", _OVERVIEW, utf16)
    return f"{text}\n" if text else ""


def _sections(report: Report) -> list[_Section]:
    """One a model, in the order of its worst variant."""
    variants: dict[str, list[Variant]] = {}
    for variant in report.variants:
        variants.setdefault(variant.model, []).append(variant)
    results: dict[str, list[Result]] = {}
    for result in report.results:
        results.setdefault(result.model, []).append(result)
    return [_Section(model, tuple(own), tuple(results.get(model, ()))) for model, own in variants.items()]


def _section(section: _Section, level: _Level, origin: Origin, *, opened: bool) -> str:
    tally = section.tally
    summary = f"{ICONS[tally.worst]} <b>{name(section.model)}</b>: {fate(tally)}"
    body = "\n\n".join(_body(section, level, origin))
    return _details(summary, body, opened=opened)


def _body(section: _Section, level: _Level, origin: Origin) -> Iterator[str]:
    found = troubles(section.results)[: level.troubles]
    yield from (trouble_block(trouble, origin) for trouble in found)
    untold = section.tally.failed - sum(len(trouble.socs) for trouble in found)
    if untold > 0:
        yield f"{count(untold, 'more failure')} of this model: {_see(origin)}."
    if section.tally.missing:
        yield _missing(section)
    made = [result for result in section.results if result.verdict in ("unverified", "ok")]
    if made[: level.rows]:
        yield "\n".join([_TABLE, *("\n".join(_rows(result)) for result in made[: level.rows])])
    untold = section.tally.made - len(made[: level.rows])
    if untold > 0:
        yield f"{count(untold, 'bundle')} that went well not listed here: {_see(origin)}."


def _missing(section: _Section) -> str:
    """The chips without a result, by variant, and what to do."""
    tally = section.tally
    chips = [result.soc for result in section.results if result.verdict == "missing"]
    named = f" ({chip_names(chips)})" if chips else ""
    return (
        f"⛔ {count(tally.missing, 'bundle')}{named} planned, but no job handed over a result: it was cancelled, "
        "ran out of time, or never began. **What to do:** run the failed jobs again; what was finished is reused."
    )


_TABLE = "| chip | precision | graph | size | cosine | max abs | metric | |\n|---|---|---|--:|--:|--:|---|---|"


def _rows(result: Result) -> Iterator[str]:
    """One row a graph; the chip and the verdict stand in the first row only."""
    bucket = "" if result.bucket == "default" else f" {name(result.bucket)}"
    for index, graph in enumerate(graph_rows(result)):
        chip, precision, verdict = name(result.soc), f"{name(result.precision)}{bucket}", verdict_words(result)
        if index:
            chip, precision, verdict = "", "", ""
        yield (
            f"| {chip} | {precision} | {name(graph.name)} | {megabytes(graph.size)} | {cosine(graph.cosine)} "
            f"| {error(graph.max_abs)} | {words(graph.metric, 120)} | {verdict} |"
        )


def _tail(report: Report) -> str:
    return "\n".join(part for part in (_remarks(report), _skipped(report), _hints(report)) if part)


def _remarks(report: Report) -> str:
    """Warnings stop nothing, so they come after what was built."""
    summary = f"⚠️ {count(len(report.remarks), 'warning')}"
    return _folded(summary, [remark_line(remark) for remark in report.remarks], _REMARKS)


def _hints(report: Report) -> str:
    """Hints never say that anything is wrong, so they come last and folded."""
    return _folded(f"💡 {hints_words(report.hints)}", [hint_line(hint) for hint in report.hints], _HINTS)


def _folded(summary: str, lines: Sequence[str], room: int) -> str:
    """Details with as many lines as there is room for and how many more there are; nothing without lines."""
    if not lines:
        return ""
    kept = fill(lines, room, utf16)
    rest = [f"- {len(lines) - len(kept):,} more"] if len(kept) < len(lines) else []
    return _details(summary, "\n".join([*kept, *rest]))


def _skipped(report: Report) -> str:
    if not report.skipped:
        return ""
    lines = [f"- {name(skip.variant)} on {chip_names(skip.socs)}: {words(skip.reason, 200)}" for skip in report.skipped]
    kept = fill(lines, _SKIPPED, utf16)
    left = len(lines) - len(kept)
    rest = [f"- {left:,} more"] if left else []
    return _details("Left out, with the reason", "\n".join([*kept, *rest]))


def _details(summary: str, body: str, *, opened: bool = False) -> str:
    """A part that can be folded. The blank lines are needed: they end the HTML, so the body is Markdown again."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>\n\n{body}\n\n</details>\n"


def _see(origin: Origin) -> str:
    return f"see {link('the run', origin.run_url)}" if origin.run_url is not None else "see the run's summary"
