"""A plan as a person reads it. Plain text without rich: 3,000 rows take it seconds to lay out."""

from __future__ import annotations

from collections.abc import Sequence

import click

from qnn.plan.jobs import Jobs
from qnn.plan.planner import Plan, PlannedVariant

_CHIPS_SHOWN = 3
_WHY_SHOWN = 70
_HEADS = ("model", "chips", "jobs", "CPU min", "MB", "why")
_RIGHT = frozenset({"jobs", "CPU min", "MB"})


def print_plan(plan: Plan, jobs: Jobs) -> None:
    """The table, the reasons, and the cost."""
    click.echo("\n".join(plan_lines(plan, jobs)))


def plan_lines(plan: Plan, jobs: Jobs) -> list[str]:
    """What `print_plan` prints."""
    lines = _table([_HEADS, *_rows(jobs)]) if plan.variants else []
    lines += [*([""] if lines else []), *(f"- {reason}" for reason in plan.reasons)]
    chips = {soc.name for variant in plan.variants for soc in variant.socs}
    bundles = sum(len(variant.socs) for variant in plan.variants)
    parts = f", in {len(jobs.parts)} parts" if len(jobs.parts) > 1 else ""
    lines += [
        "",
        f"{_count(len(plan.variants), 'variant')}, {_count(len(chips), 'chip')}, {_count(bundles, 'bundle')}",
        f"cost when nothing is in the store: {_count(jobs.count, 'job')} "
        f"({len(jobs.prepare)} prepare, {len(jobs.compile)} compile{parts}), "
        f"{jobs.minutes:.1f} CPU minutes, {jobs.bytes / 1e6:.1f} MB of context binaries",
    ]
    if jobs.estimated:
        lines.append(f"{_count(jobs.estimated, 'variant')} not measured yet: estimated from the size of the weights")
    if plan.dry_run:
        lines.append("dry run: nothing of it is to be built")
    return lines


def _rows(jobs: Jobs) -> list[tuple[str, ...]]:
    return [
        (
            own.variant.title,
            _chips(own.variant),
            str(len(own.jobs)),
            f"{own.minutes:.1f}",
            f"{own.bytes / 1e6:.1f}",
            _why(own.variant),
        )
        for own in jobs.variants
    ]


def _chips(variant: PlannedVariant) -> str:
    names = [soc.name for soc in variant.socs]
    more = f" +{len(names) - _CHIPS_SHOWN}" if len(names) > _CHIPS_SHOWN else ""
    return ", ".join(names[:_CHIPS_SHOWN]) + more


def _why(variant: PlannedVariant) -> str:
    words = "; ".join((*variant.why, *(variant.chip_why[name] for name in sorted(variant.chip_why))))
    return words if len(words) <= _WHY_SHOWN else words[: _WHY_SHOWN - 1] + "…"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    return ["  ".join(_cells(row, widths)).rstrip() for row in rows]


def _cells(row: tuple[str, ...], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if head in _RIGHT else cell.ljust(width)
        for cell, width, head in zip(row, widths, _HEADS, strict=True)
    ]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
