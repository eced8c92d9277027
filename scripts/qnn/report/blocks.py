"""The pieces that the comment and the step summary are made of: Markdown of bounded size, everything escaped. Pure."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import qnn.errors
from qnn.errors.base import ForgeError
from qnn.report.document import Failure, Finding, Graph, Hint, Lint, Plan, Remark, Report, Result, Tally, Verdict
from qnn.report.escape import clip, code, escape, fence, link, visible
from qnn.report.lint_sarif import HOME, PAGES
from qnn.report.origin import Origin

ICONS: dict[Verdict, str] = {"failed": "❌", "missing": "⛔", "unverified": "⚠️", "ok": "✅"}
HINTS_PAGE = f"{HOME}/blob/main/docs/hints.md"
_HINT_ID = re.compile(r"QH\d{2}")
_ID = re.compile(r"QF\d{3}")
_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})(?::\d{1,9})?", re.DOTALL)
_NAME = 80
_SENTENCE = 600
_LINE = 200
_DETAILS = 8
_CHIPS = 12
# A hostile text grows up to twenty times when it is escaped; a text that grows more than this is cut further.
_GROWTH = 4
# So many chips stand in the command that shows a failure again; one would do.
_REPEATED = 3


@dataclass(frozen=True)
class Trouble:
    """One failure of one variant, and every chip that has it."""

    first: Result
    failure: Failure
    socs: tuple[str, ...]


def words(text: str, limit: int = _SENTENCE) -> str:
    """A text in prose, escaped, of bounded length."""
    return escape(_short(text, limit))


def name(text: str, limit: int = _NAME) -> str:
    """A name in code type, escaped, of bounded length."""
    return code(_short(text, limit))


def count(number: int, noun: str) -> str:
    """1 bundle, 2,000 bundles."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def headline(report: Report) -> str:
    """The one line that says how it went, with its icon."""
    tally, lint, plan = report.tally, report.lint, report.plan
    if lint is not None and lint.errors and not tally.total:
        return f"❌ {count(lint.errors, 'error')} in model.yaml files: nothing was built"
    if tally.failed or tally.missing:
        return f"{ICONS[tally.worst]} {fate(tally)}"
    if report.unreadable:
        return f"⛔ {count(len(report.unreadable), 'document')} of the run could not be read"
    if not tally.total:
        return "Dry run: nothing was built" if plan is not None and plan.dry_run else "Nothing to build"
    if tally.unverified:
        return f"⚠️ {count(tally.made, 'bundle')} built, {tally.unverified:,} of them not verified"
    return f"✅ {count(tally.total, 'bundle')} built and verified"


def fate(tally: Tally) -> str:
    """5 of 6 bundles failed, 1 missing · 6 bundles, 2 not verified · 6 bundles, all good."""
    total = count(tally.total, "bundle")
    if tally.failed:
        said = f"{tally.failed:,} of {total} failed"
        return f"{said}, {tally.missing:,} missing" if tally.missing else said
    if tally.missing:
        return f"{tally.missing:,} of {total} {'is' if tally.missing == 1 else 'are'} missing"
    return f"{total}, {tally.unverified:,} not verified" if tally.unverified else f"{total}, all good"


def chip_names(socs: Sequence[str]) -> str:
    """The first chips in code type, and how many more."""
    shown = ", ".join(name(soc) for soc in socs[:_CHIPS])
    left = len(socs) - _CHIPS
    return f"{shown} and {left:,} more" if left > 0 else shown


def made_of(tally: Tally) -> str:
    """13 of 18, 4 reused."""
    said = f"{tally.made:,} of {tally.total:,}"
    return f"{said}, {tally.reused:,} reused" if tally.reused else said


def built_words(tally: Tally) -> str:
    """13 of 18 bundles built (4 reused)."""
    said = f"{tally.made:,} of {count(tally.total, 'bundle')} built"
    return f"{said} ({tally.reused:,} reused)" if tally.reused else said


def cost_words(plan: Plan) -> str:
    """12 jobs, 14.5 CPU minutes, 45 MB."""
    return f"{count(plan.jobs, 'job')}, {plan.cpu_minutes:,.1f} CPU minutes, {megabytes(plan.bytes)}"


def megabytes(size: int) -> str:
    """0.77 MB (millions of bytes); a dash for nothing."""
    return f"{size / 1e6:,.2f} MB" if size else "–"


def cosine(value: float | None) -> str:
    """Six places; a dash where there is none."""
    return "–" if value is None else f"{value:.6f}"


def error(value: float | None) -> str:
    """Two digits; a dash where there is none."""
    return "–" if value is None else f"{value:.2g}"


def id_link(given: str) -> str:
    """An id with the page that explains it; any other text only escaped."""
    if not _ID.fullmatch(given):
        return name(given)
    return link(given, f"{PAGES}/{given}.md")


def verdict_words(result: Result) -> str:
    """❌ QF620, ⛔ no result, ⚠️ not verified, ✅."""
    icon = ICONS[result.verdict]
    match result.verdict:
        case "failed":
            return f"{icon} {id_link(result.failure.id)}" if result.failure is not None else f"{icon} failed"
        case "missing":
            return f"{icon} no result"
        case "unverified":
            return f"{icon} not verified"
        case _:
            return f"{icon} reused" if result.reused else icon


def graph_rows(result: Result) -> Iterable[Graph]:
    """The graphs, or one empty line for a bundle that has none."""
    return result.graphs or (Graph("", 0, None, None, ""),)


def troubles(results: Iterable[Result]) -> tuple[Trouble, ...]:
    """Failures that say the same of several chips of one variant as one, in the order of the results."""
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        if result.failure is not None:
            groups.setdefault(_what_it_says(result, result.failure), []).append(result)
    return tuple(_trouble(group) for group in groups.values())


def trouble_block(trouble: Trouble, origin: Origin) -> str:
    """What happened, what to do, and how to see it here: at most about 12,000 characters."""
    failure = trouble.failure
    what = title_of(failure.id)
    first = trouble.first
    bucket = "" if first.bucket == "default" else f" {name(first.bucket)}"
    where = f"{name(first.precision)}{bucket} on {chip_names(trouble.socs)}"
    lines = [f"**{id_link(failure.id)}** {what} · {where}" if what else f"**{id_link(failure.id)}** · {where}", ""]
    said = words(failure.message)
    if failure.place is not None:
        said = f"{place_link(failure.place, origin)} {said}"
    lines += [f"> {said}"]
    if failure.details:
        shown = failure.details[:_DETAILS]
        lines += [">", *(f"> - {words(line, _LINE)}" for line in shown)]
        left = len(failure.details) - len(shown)
        lines += [f"> - {count(left, 'more line')} in the run's summary"] if left else []
    lines += ["", f"**What to do:** {words(failure.remedy.rstrip('.'))}."]
    if failure.log is not None:
        lines += ["", f"The log is {name(failure.log, _LINE)} among the run's artefacts."]
    return "\n".join([*lines, "", "**To see it on your machine:**", "", command_block(first, trouble.socs)])


def command_block(result: Result, socs: Sequence[str]) -> str:
    """The command that builds this again, or a remark when a name cannot be typed."""
    parts = (result.path, result.bucket, result.precision, *socs[:_REPEATED])
    if any(visible(part) != part or not part or len(part) > _LINE for part in parts):
        return "A name here has characters that cannot be typed; no command is shown."
    options = ["--bucket", result.bucket, "--precision", result.precision, "--soc", ",".join(socs[:_REPEATED])]
    model = [*options, "--", result.path] if result.path.startswith("-") else [result.path, *options]
    return fence([shlex.join(["qnn-forge", "build", *model])], "sh")


def finding_row(finding: Finding, origin: Origin) -> str:
    """One row of the table of lint's findings."""
    icon = "❌" if finding.kind == "error" else "💡"
    shown = place_link(finding.path if finding.line is None else f"{finding.path}:{finding.line}", origin)
    return f"| {icon} | {id_link(finding.id)} | {shown} | {words(finding.message)} | {words(finding.remedy)} |"


def hints_words(hints: Sequence[Hint]) -> str:
    """3 hints for speed in 2 models"""
    return f"{count(len(hints), 'hint')} for speed in {count(len({hint.model for hint in hints}), 'model')}"


def hint_line(hint: Hint) -> str:
    """One item of a list: rule, graph, what was found, what to change."""
    bucket = "" if hint.bucket == "default" else f" {name(hint.bucket)}"
    rule = link(name(hint.id), HINTS_PAGE if _HINT_ID.fullmatch(hint.id) else None)
    where = f"{name(hint.model)}{bucket} {name(hint.precision)} {name(hint.graph)}"
    return f"- {rule} {words(hint.title)} · {where}: {words(hint.found)}. **What to change:** {words(hint.change)}"


def remark_line(remark: Remark) -> str:
    """One item of a list: what it is about, what was said."""
    return f"- {name(remark.subject, 2 * _NAME)}: {words(remark.text)}"


def place_link(place: str, origin: Origin) -> str:
    """models/toy/model.yaml:7:9 with a link to that line at the commit."""
    found = _PLACE.fullmatch(place)
    path, line = (found["path"], int(found["line"])) if found else (place, None)
    return link(name(place, _LINE), origin.file_url(path, line))


FINDINGS_HEAD = "| | id | where | what is wrong | what to do |\n|---|---|---|---|---|"


def lint_words(lint: Lint) -> str:
    """Lint: 2 errors, 1 hint in 3 models."""
    found = [count(number, noun) for number, noun in ((lint.errors, "error"), (lint.hints, "hint")) if number]
    return f"{', '.join(found) or 'no findings'} in {count(lint.models, 'model')}"


def title_of(given: str) -> str:
    """The title of an id in our own catalogue; empty for an id that is not in it."""
    return escape(_titles().get(given, ""))


@functools.cache
def _titles() -> dict[str, str]:
    """The title of every error by its id. Not by the catalogue: comment.py runs without what lint rules import."""
    for module in pkgutil.iter_modules(qnn.errors.__path__, "qnn.errors."):
        importlib.import_module(module.name)
    found: dict[str, str] = {}
    waiting = [ForgeError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        found[kind.id] = kind.title
    return found


def _short(text: str, limit: int) -> str:
    shown, bound = clip(text, limit), _GROWTH * limit
    while len(escape(shown)) > bound:
        limit //= 2
        shown = clip(text, limit)
    return shown


def _what_it_says(result: Result, failure: Failure) -> tuple[object, ...]:
    message = _without_chip(failure.message, result.soc)
    variant = (result.model, result.bucket, result.precision)
    return (*variant, failure.id, message, failure.remedy, failure.details, failure.place)


def _trouble(group: Sequence[Result]) -> Trouble:
    first = group[0]
    failure = first.failure
    assert failure is not None
    if len(group) > 1:
        message = _without_chip(failure.message, first.soc)
        failure = Failure(failure.id, message, failure.remedy, failure.details, failure.place, failure.log)
    return Trouble(first, failure, tuple(result.soc for result in group))


def _without_chip(message: str, soc: str) -> str:
    """Messages of gates end their subject with the chip; without it they are the same for all chips."""
    return message.replace(f" on {soc}:", ":", 1)
