"""qnn-forge device: check a bundle on a phone, look at a phone, tidy it up, explain its errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qnn.cli.console import err, out, print_json
from qnn.cli.options import json_option

if TYPE_CHECKING:
    from qnn.bundle.manifest import Manifest
    from qnn.device.adb import Device
    from qnn.device.catalogue import KnownError
    from qnn.device.doctor import Examined
    from qnn.device.report import GraphOutcome, Outcome
    from qnn.index.document import VersionIndex

_Command = TypeVar("_Command", bound=Callable[..., Any])
_ROOT = "/data/local/tmp/qnn-forge"


def _device_options(command: _Command) -> _Command:
    """--serial, --adb and --root."""
    for option in (
        click.option("--root", default=_ROOT, show_default=True, metavar="FOLDER", help="Our folder on the device."),
        click.option("--adb", metavar="FILE", help="The adb program.  [default: the one on PATH]"),
        click.option("--serial", metavar="SERIAL", help="The device.  [default: the only one]"),
    ):
        command = option(command)
    return command


@click.group()
def device() -> None:
    """Check bundles on a real device, through Android's adb."""


@device.command(short_help="Run a bundle on a device.")
@click.argument("bundle", type=click.Path(exists=True, path_type=Path))
@_device_options
@click.option(
    "--libs", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE.tar.gz",
    help="Runtime libraries, from `qnn-forge libs --os android`.  [default: those of $QNN_SDK_ROOT]",
)  # fmt: skip
@click.option(
    "--net-run", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="qnn-net-run for aarch64-android.  [default: that of $QNN_SDK_ROOT, or one on the device]",
)  # fmt: skip
@click.option("--runs", type=click.IntRange(0, 100_000), default=100, show_default=True, help="Timed inferences.")
@click.option(
    "--timeout", type=click.IntRange(min=1), default=600, show_default=True, metavar="SECONDS", help="Per qnn-net-run."
)
@click.option(
    "--from", "index", envvar="QNN_FORGE_INDEX", metavar="URL|DIR",
    help="An index, to say what it has for the device where this bundle does not fit.  [default: $QNN_FORGE_INDEX]",
)  # fmt: skip
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the report.")
@click.option(
    "--log", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Keep qnn-net-run's words."
)
@json_option
def run(  # noqa: PLR0913, PLR0917 - one a click option
    bundle: Path,
    serial: str | None,
    adb: str | None,
    root: str,
    libs: Path | None,
    net_run: Path | None,
    runs: int,
    timeout: int,
    index: str | None,
    report: Path | None,
    log: Path | None,
    as_json: bool,
) -> None:
    """Run BUNDLE's golden inputs on a device and compare with its golden outputs, by its own gates.

    Nothing is left on the device but the bundle's and the libraries' files, so that the next check is quick;
    `device clean` removes them.

    \b
    Exit codes: 0 as it should be · 8 other numbers · 4 another chip · 9 damaged bundle · 13 device or runtime.
    """
    from qnn.bundle.recheck import opened_bundle, read_manifest  # noqa: PLC0415 - not needed for --help
    from qnn.device.adb import find_adb  # noqa: PLC0415
    from qnn.device.report import canonical, document  # noqa: PLC0415
    from qnn.device.run import Wishes, check, miss  # noqa: PLC0415

    def tell(line: str) -> None:
        if not as_json:
            err().print(line, markup=False)

    if log is not None:
        log.write_text("", encoding="utf-8")
    wishes = Wishes(libs, _sdk(), net_run, root, runs, float(timeout), log, tell)
    with opened_bundle(bundle) as folder:
        manifest = read_manifest(folder)
        there = find_adb(adb).device(serial)
        outcome = check(folder, there, wishes, lambda: _entry(index, manifest))
    found = document(outcome)
    if report is not None:
        report.write_bytes(canonical(found))
    if as_json:
        print_json(found)
    else:
        _print(outcome)
    error = miss(outcome)
    if error is not None:
        raise error


@device.command(short_help="Say what a device is and can do.")
@_device_options
@json_option
def doctor(serial: str | None, adb: str | None, root: str, as_json: bool) -> int:
    """Say what a device is and what keeps a bundle from running on it.

    \b
    Exit codes: 0 a bundle can run · 13 something is in the way.
    """
    from qnn.device.doctor import document, examine  # noqa: PLC0415
    from qnn.errors.base import ExitCode  # noqa: PLC0415

    examined = examine(_find(serial, adb), _sdk(), root)
    if as_json:
        print_json(document(examined))
    else:
        _print_examined(examined)
    return int(ExitCode.OK if examined.ready else ExitCode.DEVICE)


@device.command()
@_device_options
def clean(serial: str | None, adb: str | None, root: str) -> None:
    """Remove everything that checks left on a device."""
    from qnn.device.run import clean as remove  # noqa: PLC0415

    remove(_find(serial, adb), root)
    out().print(f"removed {root}", markup=False)


@device.command(short_help="Explain an error of QNN on a device.")
@click.argument("wanted", required=False, metavar="[NUMBER|NAME]")
@json_option
def errors(wanted: str | None, as_json: bool) -> None:
    """Explain an error of QNN on a device (1008, 0x3f0, QNN_…), or list all that are known."""
    from qnn.device.catalogue import find, known_errors  # noqa: PLC0415

    shown: tuple[KnownError, ...] = known_errors()
    if wanted is not None:
        one = find(wanted)
        if one is None:
            raise click.UsageError(f"{wanted!r} is not known; `qnn-forge device errors` lists what is")
        shown = (one,)
    if as_json:
        print_json({"schema": 1, "errors": [_explained(one) for one in shown]})
    elif wanted is None:
        for one in shown:
            out().print(f"{one.id:<22}{one.name or '':<46}{one.title}", markup=False)
    else:
        _explain(shown[0])


def _find(serial: str | None, adb: str | None) -> Device:
    from qnn.device.adb import find_adb  # noqa: PLC0415

    return find_adb(adb).device(serial)


def _sdk() -> Path | None:
    named = os.environ.get("QNN_SDK_ROOT")
    return Path(named) if named else None


def _entry(index: str | None, manifest: Manifest) -> VersionIndex | None:
    """The bundle's version in the index, where one was named; None where the index does not have it."""
    if index is None:
        return None
    from qnn.cli.index_options import open_desk  # noqa: PLC0415
    from qnn.pull.bases import open_base  # noqa: PLC0415
    from qnn.pull.run import document_of  # noqa: PLC0415

    with open_desk() as desk:
        return document_of(manifest.model.name, manifest.model.version, open_base(index), desk)


def _print(outcome: Outcome) -> None:
    console, chip, runtime = out(), outcome.chip, outcome.runtime
    facts = outcome.facts
    console.print(f"{facts.model or 'device'}: {chip.name} ({chip.group}), Android {facts.android}", markup=False)
    console.print(f"bundle  {outcome.manifest.name}, QAIRT {outcome.manifest.toolchain.build_id}", markup=False)
    console.print(f"runtime QAIRT {runtime.build_id} from {runtime.origin}", markup=False)
    for graph in outcome.graphs:
        for comparison, verdict in zip(graph.outputs, graph.verdicts, strict=True):
            numbers = f"cosine {comparison.cosine:.6f}, max abs {comparison.max_abs:.3g}"
            console.print(
                f"{'ok  ' if verdict.passed else 'MISS'}    {graph.graph} {comparison.name}: {numbers}", markup=False
            )
        console.print(f"        {graph.graph}: {_took(graph)}", markup=False)


def _took(graph: GraphOutcome) -> str:
    took = graph.latency
    if took is None:
        return "not timed"
    mean = "lost in how much starting varies; raise --runs" if took.mean_us is None else f"{took.mean_us / 1000:.3f} ms"
    line = f"{mean} an inference, {took.runs} after {took.warm_ups} warm-ups"
    if took.average_us is not None:
        line += f"; by qnn-net-run {took.average_us} µs ({took.min_us} to {took.max_us})"
    return line


def _print_examined(examined: Examined) -> None:
    console, facts, chip = out(), examined.facts, examined.chip
    rows = [
        ("adb", examined.adb),
        ("device", f"{facts.model or 'unknown'}, Android {facts.android or 'unknown'} (API {facts.api}), {facts.abi}"),
        ("ro.soc.model", facts.soc_model or "empty"),
        ("chip", "not known" if chip is None else f"{chip.name} (soc_id {chip.soc_id}), {chip.group}"),
        ("NPU driver", ", ".join(facts.fastrpc) or "not seen"),
        *((f"own QNN {number}", f"{one.path} {one.build}") for number, one in enumerate(facts.libraries, 1)),
        ("qnn-net-run", examined.net_run or "not found"),
        ("left there", f"{examined.left_kb} KB by earlier checks"),
    ]
    for name, text in rows:
        console.print(f"{name:<14}{text}", markup=False)
    for finding in examined.findings:
        console.print(f"\n{'problem' if finding.stops else 'note'}: {finding.message}", markup=False)
        console.print(f"  remedy: {finding.remedy}", markup=False)
    if chip is not None and examined.ready:
        console.print(f"\nlibraries for it: qnn-forge libs --soc {chip.name} --os android", markup=False)


def _explained(one: KnownError) -> dict[str, object]:
    return {**asdict(one), "says": [pattern.pattern for pattern in one.says], "page": one.page}


def _explain(one: KnownError) -> None:
    console = out()
    console.print(f"{one.label}\n\n{one.cause}", markup=False)
    for head, lines in (("check", one.check), ("fix", one.fix), ("seen", one.seen)):
        for line in lines:
            console.print(f"{head:<6}{line}", markup=False)
