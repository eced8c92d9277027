"""qnn-forge faults: the known faults of the compiler, and whether they still hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from qnn.cli import console
from qnn.cli.options import json_option

if TYPE_CHECKING:
    from qnn.faults.measure import Measured
    from qnn.faults.table import Fault


@click.group()
def faults() -> None:
    """List, show and measure again the known faults of the HTP compiler."""


@faults.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """Every entry of the table, with what qnn-forge does about it."""
    from qnn.faults.table import load_faults  # noqa: PLC0415

    entries = load_faults()
    if as_json:
        console.print_json({"schema": 1, "faults": [_document(fault) for fault in entries]})
        return
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("id", "outcome", "rewrite", "title"):
        table.add_column(title, no_wrap=title != "title", overflow="fold")
    for fault in entries:
        table.add_row(fault.id, fault.outcome.value, fault.rewrite or "", fault.title)
    console.out().print(table)


@faults.command()
@click.argument("fault_id", metavar="ID")
@json_option
def show(fault_id: str, as_json: bool) -> None:
    """One entry: pattern, conditions, evidence, and what to do."""
    fault = _find(fault_id)
    if as_json:
        console.print_json({"schema": 1, **_document(fault)})
        return
    facts = [
        ("operators", ", ".join(fault.operators)),
        ("pattern", fault.pattern),
        ("archs", ", ".join(fault.archs) or "all"),
        ("precisions", ", ".join(fault.precisions) or "all"),
        ("seen in QAIRT", ", ".join(fault.qairt)),
        ("evidence", fault.evidence),
        ("outcome", fault.outcome.value + (f" by {fault.rewrite}" if fault.rewrite else "")),
        ("what to do", fault.remedy),
    ]
    out = console.out()
    out.print(f"{fault.id}: {fault.title}", style="bold", markup=False)
    for title, text in facts:
        out.print(f"  {title:<14} {text}", markup=False)
    for probe in fault.probes:
        prepared = f", {probe.mended} after preparation" if probe.mended is not None else ""
        out.print(f"  {'probe':<14} {probe.graph} on {probe.soc}: {probe.raw}{prepared}", markup=False)


@faults.command()
@click.argument("fault_ids", metavar="[ID]...", nargs=-1)
@json_option
def check(fault_ids: tuple[str, ...], as_json: bool) -> None:
    """Measure every probe of these entries (all when none is named) with the installed compiler.

    Takes about a minute on two cores. Ends with exit code 6 when any shows something else than the table says.
    """
    from qnn.chips.table import load_table  # noqa: PLC0415
    from qnn.faults.measure import measure, require_agreement  # noqa: PLC0415
    from qnn.faults.table import load_faults  # noqa: PLC0415
    from qnn.toolchains.pip import PipToolchain  # noqa: PLC0415

    qairt = PipToolchain().identity.qairt
    entries = tuple(_find(fault_id) for fault_id in fault_ids) or load_faults()
    with _progress(sum(len(fault.probes) for fault in entries)) as on_probe:
        found = measure(entries, load_table(), on_probe)
    if as_json:
        console.print_json(_report(qairt, found))
    else:
        holding = sum(measured.word == "holds" for measured in found)
        words = f"QAIRT {qairt}: {len(entries)} entries, {len(found)} probes, {holding} show what the table says"
        console.out().print(words, markup=False)
    require_agreement(found)


def _find(fault_id: str) -> Fault:
    from difflib import get_close_matches  # noqa: PLC0415

    from qnn.faults.table import load_faults  # noqa: PLC0415

    entries = {fault.id: fault for fault in load_faults()}
    if fault_id in entries:
        return entries[fault_id]
    near = get_close_matches(fault_id, entries, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise click.BadParameter(f"there is no known fault {fault_id!r}{hint} (see `qnn-forge faults list`)")


def _document(fault: Fault) -> dict[str, object]:
    return {
        "id": fault.id,
        "title": fault.title,
        "operators": list(fault.operators),
        "pattern": fault.pattern,
        "archs": list(fault.archs),
        "precisions": list(fault.precisions),
        "qairt": list(fault.qairt),
        "evidence": fault.evidence,
        "outcome": fault.outcome.value,
        "rewrite": fault.rewrite,
        "remedy": fault.remedy,
        "probes": [
            {
                "graph": probe.graph,
                "soc": probe.soc,
                "raw": probe.raw.value,
                "mended": None if probe.mended is None else probe.mended.value,
            }
            for probe in fault.probes
        ],
    }


def _report(qairt: str, found: Sequence[Measured]) -> dict[str, object]:
    return {
        "schema": 1,
        "qairt": qairt,
        "agree": all(measured.word == "holds" for measured in found),
        "probes": [
            {
                "fault": measured.fault.id,
                "graph": measured.probe.graph,
                "soc": measured.probe.soc,
                "word": measured.word,
                "table": {
                    "raw": measured.probe.raw.value,
                    "mended": None if measured.probe.mended is None else measured.probe.mended.value,
                },
                "seen": {
                    "raw": measured.raw.shown.value,
                    "mended": None if measured.mended is None else measured.mended.shown.value,
                },
                "detail": measured.raw.detail,
            }
            for measured in found
        ],
    }


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Measured], None]]:
    """A progress bar on stderr if that is a terminal, else nothing. Gives the function to call for each answer."""
    err = console.err()
    if not err.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("asking the compiler"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("probes", total=total)
        yield lambda _: bar.advance(task)
