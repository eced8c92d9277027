"""qnn-forge soc: list, show and check the chips of the chip table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from qnn.cli import console
from qnn.cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from qnn.chips.differences import SweepReport
    from qnn.chips.soc import Soc
    from qnn.chips.sweep import Observation
    from qnn.chips.table import ChipTable

_WIDE = 10_000


@click.group()
def soc() -> None:
    """List, show and check the chips of the chip table."""


@soc.command("list")
@click.argument("expressions", nargs=-1, metavar="[EXPR]...")
@click.option("--arch", "arches", multiple=True, metavar="vNN", help="Only chips of this Hexagon version.")
@click.option("--fp16/--no-fp16", "fp16", default=None, help="Only chips with (or without) fp16.")
@click.option("--status", type=click.Choice(["public", "compiler-only"]), help="Only chips of this status.")
@json_option
def list_chips(
    expressions: tuple[str, ...], arches: tuple[str, ...], fp16: bool | None, status: str | None, as_json: bool
) -> None:
    """List chips: all, or those that EXPR selects (names, globs, all, public, flagships, groups, !name).

    \b
    qnn-forge soc list
    qnn-forge soc list 'SM8*' --fp16
    qnn-forge soc list flagships --json
    """
    from qnn.chips.select import select  # noqa: PLC0415
    from qnn.chips.table import load_table  # noqa: PLC0415

    table = load_table()
    versions = _versions(arches)
    chosen = [
        chip
        for chip in select(expressions or ("all",), table)
        if (not versions or chip.arch in versions)
        and (fp16 is None or chip.fp16 is fp16)
        and (status is None or chip.status == status)
    ]
    if as_json:
        console.print_json([_document(chip) for chip in chosen])
    else:
        _print_table(chosen)


@soc.command("show")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show all facts of one chip, found by any of its names (SM8650, '8 Gen 3', SM8650P, soc_id:57)."""
    from qnn.chips.table import load_table  # noqa: PLC0415

    table = load_table()
    chip = table.lookup(name)
    alike = [other.name for other in table.groups[chip.group] if other is not chip]
    if as_json:
        console.print_json({**_document(chip), "same_group": alike})
    else:
        _print_facts(chip, alike, table)


@soc.command("check")
@json_option
def check(as_json: bool) -> None:
    """Ask the installed compiler for every chip and compare with the table (about a minute).

    Compiles a one-op graph for every id in fp16 and quantized and reads the binaries back. Exit code 0 only when all
    agree, else 4 (QF205) and a list of what differs: missing, changed and new ids.
    """
    from qnn.binary.qnn_system import installed_library  # noqa: PLC0415
    from qnn.chips.differences import compare  # noqa: PLC0415
    from qnn.chips.sweep import ask_compiler, ids_to_ask  # noqa: PLC0415
    from qnn.chips.table import load_table  # noqa: PLC0415

    installed_library()  # an error of its own when the compiler is not installed at all
    table = load_table()
    ids = ids_to_ask(table)
    with _progress(len(ids)) as on_answer:
        observations = ask_compiler(ids, on_answer)
    report = compare(observations, table)
    if as_json:
        console.print_json(_report_document(report))
    else:
        _print_report(report)
    report.require_agreement()


def _versions(arches: tuple[str, ...]) -> frozenset[str]:
    from qnn.chips.soc import ARCHES  # noqa: PLC0415

    versions = frozenset(f"v{arch.lower().removeprefix('v')}" for arch in arches)
    unknown = sorted(versions.difference(ARCHES))
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)} is none of {', '.join(ARCHES)}", param_hint="'--arch'")
    return versions


def _document(chip: Soc) -> dict[str, object]:
    return {
        "name": chip.name,
        "marketing": list(chip.marketing),
        "soc_id": chip.soc_id,
        "arch": chip.arch,
        "vtcm_mb": chip.vtcm_mb,
        "hvx_threads": chip.hvx_threads,
        "fp16": chip.fp16,
        "compiler_fp16": chip.compiler_fp16,
        "first_qairt": chip.first_qairt,
        "device": list(chip.device),
        "linux_soc0": list(chip.linux_soc0),
        "aliases": list(chip.aliases),
        "status": chip.status.value,
        "sources": {evidence.fact: list(evidence.lists) for evidence in chip.sources},
        "date": chip.date,
        "note": chip.note,
    }


def _print_table(chips: list[Soc]) -> None:
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("name", "soc_id", "arch", "VTCM MB", "HVX", "fp16", "status"):
        table.add_column(title, justify="right" if title in ("soc_id", "VTCM MB", "HVX") else "left", no_wrap=True)
    for title in ("products", "other names"):
        table.add_column(title, overflow="fold")
    for chip in chips:
        table.add_row(
            chip.name,
            str(chip.soc_id),
            chip.arch,
            str(chip.vtcm_mb),
            str(chip.hvx_threads),
            _yes(chip.fp16),
            chip.status.value,
            ", ".join(chip.marketing),
            ", ".join(name for name in chip.names if name != chip.name),
        )
    out = console.out()
    if not out.is_terminal:
        out.width = _WIDE  # in a pipe a row is a line, however long
    out.print(table)


def _print_facts(chip: Soc, alike: list[str], table: ChipTable) -> None:
    meanings = dict(table.lists)
    facts = [
        ("products", ", ".join(chip.marketing)),
        ("soc_id", str(chip.soc_id)),
        ("arch", chip.arch),
        ("VTCM", f"{chip.vtcm_mb} MB"),
        ("HVX threads", str(chip.hvx_threads)),
        ("fp16", _yes(chip.fp16) + ("" if chip.fp16 is chip.compiler_fp16 else " (though the compiler says yes)")),
        ("known to QAIRT", chip.known_since),
        ("ro.soc.model", ", ".join(chip.device)),
        ("Linux soc0 id", ", ".join(map(str, chip.linux_soc0))),
        ("other names", ", ".join(chip.aliases)),
        ("status", chip.status.value),
        ("same group", ", ".join(alike)),
        ("note", chip.note),
        ("as of", chip.date),
    ]
    out = console.out()
    out.print(chip.name, style="bold", markup=False)
    for title, text in facts:
        if text:
            out.print(f"  {title:<15} {text}", markup=False)
    for evidence in chip.sources:
        named = "; ".join(meanings.get(code, code) for code in evidence.lists)
        out.print(f"  {'source of ' + evidence.fact:<15} {named}", markup=False)


def _print_report(report: SweepReport) -> None:
    out = console.out()
    line = f"QAIRT {report.qairt}: {report.asked} ids asked, {len(report.agreeing)} chips agree with the table"
    if report.later:
        line += f", {len(report.later)} are newer than this QAIRT"
    line += f", {len(report.without_htp)} ids without an HTP, differences: {len(report.differences)}"
    out.print(line, markup=False)
    if not report.vtcm_checked:
        out.print("VTCM was not checked: this QAIRT does not tell it (2.49.40 and later do)", markup=False)


def _report_document(report: SweepReport) -> dict[str, object]:
    return {
        "qairt": report.qairt,
        "asked": report.asked,
        "agree": not report.differences,
        "agreeing": list(report.agreeing),
        "later": list(report.later),
        "without_htp": list(report.without_htp),
        "vtcm_checked": report.vtcm_checked,
        "differences": [
            {
                "kind": difference.kind.value,
                "soc_id": difference.soc_id,
                "name": difference.name,
                "field": difference.field,
                "table": difference.table,
                "compiler": difference.compiler,
            }
            for difference in report.differences
        ],
    }


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Observation], None]]:
    """A progress bar on stderr if that is a terminal, else nothing. Gives the function to call for each answer."""
    err = console.err()
    if not err.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("asking the compiler"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("ids", total=total)
        yield lambda _: bar.advance(task)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
