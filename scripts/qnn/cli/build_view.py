"""What a build shows: live progress on a terminal, a table at the end, or one JSON document."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from qnn.build.events import Silence, Stage
from qnn.build.results import GraphResult, TargetResult
from qnn.build.run import BuildRequest, preview
from qnn.cli.console import err, out, print_error, print_json

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@dataclass(frozen=True)
class Remark:
    """A line that a stage said."""

    stage: Stage
    text: str


class Spoken(Silence):
    """Says remarks on stderr as they come and keeps them; of anything else it says nothing."""

    def __init__(self) -> None:
        self.said: list[Remark] = []
        self._guard = threading.Lock()

    def remarks(self, stage: Stage, lines: Sequence[str]) -> None:
        with self._guard:
            for line in lines:
                self.said.append(Remark(stage, line))
                self._say(f"warning: {stage.subject}: {line}")

    def _say(self, line: str) -> None:
        click.secho(line, fg="yellow", err=True)


@contextmanager
def progress(request: BuildRequest) -> Iterator[Spoken]:
    """A live view on a terminal; in a pipe, remarks alone."""
    if not sys.stderr.isatty():
        yield Spoken()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err(), transient=True) as view:
        yield _Live(view, len(request.plan.targets))


class _Live(Spoken):
    """One bar over all targets, one line for each stage at work."""

    def __init__(self, view: Progress, total: int) -> None:
        super().__init__()
        self._view = view
        self._overall = view.add_task("bundles", total=total)
        self._at_work: dict[Stage, TaskID] = {}

    def begins(self, stage: Stage) -> None:
        with self._guard:
            self._at_work[stage] = self._view.add_task(f"  {stage.name:<10} {stage.subject}", total=None)

    def ends(self, stage: Stage, seconds: float, *, reused: bool) -> None:
        with self._guard:
            self._finish(stage)
            if stage.name == "target":
                self._view.advance(self._overall)
            elif not reused:
                self._view.console.print(f"[dim]{stage.name:<10} {stage.subject}  {seconds:.1f} s[/dim]")

    def fails(self, stage: Stage) -> None:
        with self._guard:
            self._finish(stage)
            if stage.name == "target":
                self._view.advance(self._overall)
            else:
                self._view.console.print(f"[red]{stage.name:<10} {stage.subject}  failed[/red]")

    def _say(self, line: str) -> None:
        self._view.console.print(line, style="yellow", markup=False)

    def _finish(self, stage: Stage) -> None:
        task = self._at_work.pop(stage, None)
        if task is not None:
            self._view.remove_task(task)


def print_results(
    request: BuildRequest, results: tuple[TargetResult, ...], said: Sequence[Remark], *, as_json: bool
) -> None:
    """The table (or the document), then every error once, then where the bundles are."""
    if as_json:
        print_json(results_document(request, results, said))
    else:
        _print_table(results)
    shown = set()
    for result in results:
        if result.error is not None and id(result.error) not in shown:
            shown.add(id(result.error))
            print_error(result.error)
    if as_json:
        return
    made = sum(result.error is None and not result.reused for result in results)
    reused = sum(result.reused for result in results)
    failed = sum(result.error is not None for result in results)
    left = len(request.plan.targets) - len(results)
    words = [f"{made} built", f"{reused} reused from the store", f"{failed} failed" if failed else ""]
    words += [f"{left} not begun (use --keep-going)" if left else ""]
    words += [f"{len(request.plan.skipped)} skipped (see --dry-run)" if request.plan.skipped else ""]
    out().print(f"{', '.join(word for word in words if word)}; bundles are in {request.out}/")


def results_document(
    request: BuildRequest, results: tuple[TargetResult, ...], said: Sequence[Remark]
) -> dict[str, Any]:
    """The --json document of a build (schema 1)."""
    return {
        "schema": 1,
        "out": str(request.out),
        "targets": [_target_document(result) for result in results],
        "skipped": [
            {"variant": skip.variant.name, "soc": skip.soc.name, "reason": skip.reason} for skip in request.plan.skipped
        ],
        "remarks": [
            {"stage": remark.stage.name, "subject": remark.stage.subject, "text": remark.text}
            for remark in sorted(said, key=lambda remark: (remark.stage.subject, remark.text))
        ],
    }


def print_dry_run(request: BuildRequest, *, as_json: bool) -> None:
    """What would be built, what the store has, what is left out and why."""
    rows = preview(request)
    if as_json:
        print_json(
            {
                "schema": 1,
                "targets": [
                    {"name": target.name, "soc": target.soc.name, "cached": cached, "verify": verify}
                    for target, cached, verify in rows
                ],
                "skipped": [
                    {"variant": skip.variant.name, "soc": skip.soc.name, "reason": skip.reason}
                    for skip in request.plan.skipped
                ],
            }
        )
        return
    from rich.table import Table  # noqa: PLC0415

    table = Table("model", "bucket", "precision", "chip", "in the store", "verify", box=None)
    for target, cached, verify in rows:
        variant = target.variant
        table.add_row(
            variant.model.name, variant.bucket, variant.precision, target.soc.name,
            "yes" if cached else "no", "yes" if verify else "no",
        )  # fmt: skip
    out().print(table)
    for skip in request.plan.skipped:
        out().print(f"[dim]skipped {skip.variant.name} on {skip.soc.name}: {skip.reason}[/dim]")


def _print_table(results: tuple[TargetResult, ...]) -> None:
    from rich.table import Table  # noqa: PLC0415

    narrow = out().width < _WIDE
    table = Table(box=None, pad_edge=False)
    for name, right in _COLUMNS:
        # On a narrow terminal the metric gives way first: everything else stays readable.
        table.add_column(
            name, justify="right" if right else "left", no_wrap=True, ratio=1 if narrow and name == "metric" else None
        )
    for result in results:
        for graph in result.graphs or (GraphResult("-", 0, None, None, ""),):
            table.add_row(*_row(result, graph))
    out().print(table)


# Below this many columns the metric is cut short.
_WIDE = 130
_COLUMNS = (
    ("model", False), ("graph", False), ("precision", False), ("chip", False), ("size", True), ("cosine", True),
    ("max abs", True), ("metric", False), ("verdict", False), ("s", True), ("cached", False),
)  # fmt: skip


def _row(result: TargetResult, graph: GraphResult) -> list[str]:
    variant = result.target.variant
    colour = {"ok": "green", "unverified": "yellow", "failed": "red"}[result.verdict]
    return [
        variant.model.name + ("" if len(variant.model.buckets) == 1 else f" {variant.bucket}"),
        graph.graph,
        variant.precision,
        result.target.soc.name,
        f"{graph.size / 1e6:.2f} MB" if graph.size else "-",
        "-" if graph.cosine is None else f"{graph.cosine:.6f}",
        "-" if graph.max_abs is None else f"{graph.max_abs:.2g}",
        graph.metric or "-",
        f"[{colour}]{result.verdict}[/{colour}]" + (f" {result.error.id}" if result.error else ""),
        f"{result.seconds:.1f}",
        "yes" if result.reused else "no",
    ]


def _target_document(result: TargetResult) -> dict[str, Any]:
    variant = result.target.variant
    return {
        "name": result.target.name,
        "model": variant.model.name,
        "version": variant.model.version,
        "bucket": variant.bucket,
        "precision": variant.precision,
        "soc": result.target.soc.name,
        "verdict": result.verdict,
        "reused": result.reused,
        "seconds": round(result.seconds, 3),
        "folder": None if result.folder is None else str(result.folder),
        "archive": None if result.archive is None else str(result.archive),
        "sha256": result.sha256,
        "graphs": [
            {"name": g.graph, "size": g.size, "cosine": g.cosine, "max_abs": g.max_abs, "metric": g.metric}
            for g in result.graphs
        ],
        "error": None
        if result.error is None
        else {
            "id": result.error.id,
            "message": result.error.message,
            "remedy": result.error.remedy,
            "details": list(result.error.details),
            "place": None if result.error.place is None else str(result.error.place),
            "log": None if result.error.log is None else str(result.error.log),
        },
    }
