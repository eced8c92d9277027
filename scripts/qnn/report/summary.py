"""The step summary of a run: every result in one table, worst first, within GitHub's limit of 1 MiB. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from qnn.report.blocks import (
    FINDINGS_HEAD,
    built_words,
    cosine,
    cost_words,
    count,
    error,
    finding_row,
    graph_rows,
    headline,
    hint_line,
    hints_words,
    lint_words,
    megabytes,
    name,
    remark_line,
    trouble_block,
    troubles,
    verdict_words,
    words,
)
from qnn.report.document import Report, Result
from qnn.report.escape import escape, link
from qnn.report.fill import fill, table, utf8
from qnn.report.origin import Origin

# GitHub's limit for the summary of one step, in bytes.
LIMIT = 1 << 20
# So much of a digest tells bundles apart; report.json has all of it.
_DIGEST = 12
# What each part may take, in hundredths; the table of all bundles has the rest.
_FAILURES, _FINDINGS, _SKIPPED, _REASONS, _UNREADABLE, _HINTS, _REMARKS = 12, 6, 4, 2, 2, 4, 4
_HEAD = (
    "| | model | precision | chip | graph | size | cosine | max abs | metric | bundle |\n"
    "|---|---|---|---|---|--:|--:|--:|---|---|"
)


def summary(report: Report, origin: Origin, limit: int = LIMIT) -> str:
    """The summary's Markdown, at most `limit` bytes of UTF-8 (100,000 or more), ending in a line break."""
    share = limit // 100
    parts = [
        f"## {headline(report)}\n",
        _about(report, origin),
        _listed("Planned: " + cost_words(report.plan), list(report.plan.reasons), _REASONS * share)
        if report.plan is not None
        else "",
        _listed(
            "Documents that could not be read",
            [f"{bad.name}: {bad.reason}" for bad in report.unreadable],
            _UNREADABLE * share,
        )
        if report.unreadable
        else "",
        _lint(report, origin, _FINDINGS * share),
        _failures(report, origin, _FAILURES * share),
    ]
    tails = (
        _remarks(report, _REMARKS * share),
        _skipped(report, _SKIPPED * share),
        _hints(report, _HINTS * share),
    )
    tail = "\n".join(part for part in tails if part)
    head = "\n".join(part for part in parts if part)
    left = limit - utf8(head) - utf8(tail) - 2 * share
    return "\n".join(part for part in (head, _results(report, origin, left), tail) if part)


def _about(report: Report, origin: Origin) -> str:
    said = [built_words(report.tally)] if report.tally.total else []
    if origin.commit is not None:
        said.append(f"commit {link(name(origin.commit[:12]), origin.commit_url)}")
    if report.tally.made and origin.artifacts_url is not None:
        said.append(link("bundles and logs", origin.artifacts_url))
    return " · ".join(said) + "\n" if said else ""


def _lint(report: Report, origin: Origin, budget: int) -> str:
    lint = report.lint
    if lint is None:
        return ""
    rows = [finding_row(finding, origin) for finding in lint.findings]
    text = table(FINDINGS_HEAD, rows, "findings, see the log of lint", budget, utf8)
    return f"### Lint: {lint_words(lint)}\n" + (f"\n{text}\n" if text else "")


def _failures(report: Report, origin: Origin, budget: int) -> str:
    blocks = [
        f"#### {name(trouble.first.model)}\n\n{trouble_block(trouble, origin)}\n"
        for trouble in troubles(report.results)
    ]
    if not blocks:
        return ""
    kept = fill(blocks, budget, utf8)
    left = len(blocks) - len(kept)
    rest = [f"{count(left, 'more failure')}: the table below has their ids.\n"] if left else []
    return "\n".join(["### What failed, and what to do\n", *kept, *rest])


def _results(report: Report, origin: Origin, budget: int) -> str:
    """All results, or the worst of them with the number of those left out."""
    pieces = ["\n".join(_rows(result, origin)) for result in report.results]
    if not pieces:
        return ""
    kept = fill(pieces, budget - utf8(_HEAD), utf8)
    left = report.tally.total - len(kept)
    rest = (
        ["", f"{count(left, 'more bundle')}, none worse than these: see report.json among the artefacts."]
        if left
        else []
    )
    return "\n".join(["### All bundles\n", _HEAD, *kept, *rest]) + "\n"


def _rows(result: Result, origin: Origin) -> Iterator[str]:
    bucket = "" if result.bucket == "default" else f" {name(result.bucket)}"
    for index, graph in enumerate(graph_rows(result)):
        first = index == 0
        yield (
            f"| {verdict_words(result) if first else ''} | {name(result.model)}{bucket} | {name(result.precision)} "
            f"| {name(result.soc)} | {name(graph.name)} | {megabytes(graph.size)} | {cosine(graph.cosine)} "
            f"| {error(graph.max_abs)} | {words(graph.metric, 120)} | {_bundle(result, origin) if first else ''} |"
        )


def _bundle(result: Result, origin: Origin) -> str:
    if result.archive is None:
        return ""
    digest = "" if result.sha256 is None else f" sha256 {name(result.sha256[:_DIGEST])}…"
    return f"{link(name(result.archive, 160), origin.artifacts_url)}{digest}"


def _skipped(report: Report, budget: int) -> str:
    if not report.skipped:
        return ""
    lines = [f"{skip.variant} on {', '.join(skip.socs)}: {skip.reason}" for skip in report.skipped]
    return _listed("Left out, with the reason", lines, budget)


def _remarks(report: Report, budget: int) -> str:
    if not report.remarks:
        return ""
    kept = fill((remark_line(remark) for remark in report.remarks), budget, utf8)
    left = len(report.remarks) - len(kept)
    rest = [f"- {left:,} more"] if left else []
    return "\n".join([f"### {count(len(report.remarks), 'warning')}\n", *kept, *rest]) + "\n"


def _hints(report: Report, budget: int) -> str:
    if not report.hints:
        return ""
    items = ["\n".join([hint_line(hint), *(f"  - {words(line)}" for line in hint.details)]) for hint in report.hints]
    kept = fill(items, budget, utf8)
    left = len(items) - len(kept)
    rest = [f"- {left:,} more"] if left else []
    return "\n".join([f"### {hints_words(report.hints)}\n", *kept, *rest]) + "\n"


def _listed(title: str, lines: list[str], budget: int) -> str:
    """A heading and a list; only the heading without lines."""
    kept = fill((f"- {words(line)}" for line in lines), budget, utf8)
    left = len(lines) - len(kept)
    rest = [f"- {left:,} more"] if left else []
    body = "\n".join([*kept, *rest])
    return f"### {escape(title)}\n" + (f"\n{body}\n" if body else "")
