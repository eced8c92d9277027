"""A report as JSON of bounded size: what is worst stays, the rest is counted. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from qnn.report.document import Report
from qnn.report.strict import MAX_BYTES

_Item = TypeVar("_Item")
# What may be taken of the whole, in hundredths; results take what is left.
_HEAD, _VARIANTS, _FINDINGS, _SKIPPED, _REASONS, _UNREADABLE, _HINTS, _REMARKS = 2, 25, 15, 8, 5, 5, 5, 5


def to_json(report: Report, limit: int = MAX_BYTES) -> str:
    """The document in one line, keys sorted, at most `limit` bytes of UTF-8 (10,000 or more), newline included."""
    return _dump(dataclasses.asdict(fit(report, limit))) + "\n"


def fit(report: Report, limit: int = MAX_BYTES) -> Report:
    """The report without the best results (and the last of every other list) when its JSON would be too long."""
    if len(_encoded(report)) < limit:
        return report
    share = limit // 100
    plan, lint = report.plan, report.lint
    if plan is not None:
        plan = dataclasses.replace(plan, reasons=_head(plan.reasons, _REASONS * share))
    if lint is not None:
        lint = dataclasses.replace(lint, findings=_head(lint.findings, _FINDINGS * share))
    slim = dataclasses.replace(
        report,
        variants=_head(report.variants, _VARIANTS * share),
        skipped=_head(report.skipped, _SKIPPED * share),
        unreadable=_head(report.unreadable, _UNREADABLE * share),
        plan=plan,
        lint=lint,
        hints=_head(report.hints, _HINTS * share),
        remarks=_head(report.remarks, _REMARKS * share),
        results=(),
    )
    left = limit - len(_encoded(slim)) - _HEAD * share
    return dataclasses.replace(slim, results=_head(report.results, left))


def _head(items: Sequence[_Item], budget: int) -> tuple[_Item, ...]:
    """As many of the first items as `budget` bytes hold."""
    kept: list[_Item] = []
    for item in items:
        budget -= len(_encoded(item)) + 1
        if budget < 0:
            break
        kept.append(item)
    return tuple(kept)


def _encoded(item: Any) -> bytes:
    return _dump(item if isinstance(item, str) else dataclasses.asdict(item)).encode()


def _dump(value: Any) -> str:
    # Everything but ASCII is escaped: half a surrogate pair, which JSON may hold, has no UTF-8.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
