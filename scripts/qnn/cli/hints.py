"""qnn-forge hints: what would make a graph faster on the NPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qnn.cli.console import out, print_json
from qnn.cli.options import jobs_option, json_option, store_option

if TYPE_CHECKING:
    from qnn.hints.run import GraphHints


@click.command()
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--soc", "socs", multiple=True, metavar="NAME", help="Only these chips.  [default: one a variant]")
@click.option("--precision", "precisions", multiple=True, metavar="NAME", help="Only these precisions (globs).")
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Only these shape buckets (globs).")
@jobs_option
@store_option
@json_option
def hints(
    *,
    models: tuple[str, ...],
    socs: tuple[str, ...],
    precisions: tuple[str, ...],
    buckets: tuple[str, ...],
    jobs: int,
    store: Path,
    as_json: bool,
) -> None:
    """Say what in the graphs of MODELs costs time on the NPU, and what to change. The exit code is 0.

    Compiles each graph once for a chip and looks at what the compiler made of it. `qnn-forge report` takes the
    document of --json beside those of builds.
    """
    from qnn.chips.table import load_table  # noqa: PLC0415
    from qnn.hints.run import run_hints, targets_of  # noqa: PLC0415
    from qnn.model.load import find_models, load_models  # noqa: PLC0415
    from qnn.plan.targets import Wanted, plan_build  # noqa: PLC0415

    table = load_table()
    plan = plan_build(load_models(find_models(models)), Wanted(socs, buckets, precisions), table)
    results = run_hints(plan.targets if socs else targets_of(plan, table), table, store, jobs)
    if as_json:
        print_json({"schema": 1, "kind": "qnn-forge-hints", "hints": [one for r in results for one in _documents(r)]})
        return
    for result in results:
        _print(result)


def _documents(result: GraphHints) -> list[dict[str, Any]]:
    variant = result.target.variant
    return [
        {
            "model": variant.model.name,
            "version": variant.model.version,
            "bucket": variant.bucket,
            "precision": variant.precision,
            "soc": result.target.soc.name,
            "graph": result.graph,
            "id": hint.id,
            "title": hint.title,
            "found": hint.found,
            "change": hint.change,
            "details": list(hint.details),
        }
        for hint in result.hints
    ]


def _print(result: GraphHints) -> None:
    from rich.markup import escape  # noqa: PLC0415

    console = out()
    count = len(result.hints)
    said = "no hints" if not count else "1 hint" if count == 1 else f"{count} hints"
    console.print(f"{escape(result.target.name)} {escape(result.graph)}: {said}", highlight=False)
    for hint in result.hints:
        console.print(f"  [yellow]{hint.id}[/yellow] {escape(hint.title)}: {escape(hint.found)}", highlight=False)
        for line in hint.details:
            console.print(f"    {escape(line)}", highlight=False)
        console.print(f"    [dim]change:[/dim] {escape(hint.change)}", highlight=False)
