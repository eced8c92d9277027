"""qnn-forge doctor: what can be done on this machine, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnn.cli.console import out, print_json
from qnn.cli.options import json_option, store_option

if TYPE_CHECKING:
    from qnn.doctor.facts import Facts, Machine, Toolchain, Trial
    from qnn.doctor.judge import Finding, Verdict


@click.command()
@store_option
@json_option
def doctor(*, store: Path, as_json: bool) -> int:
    """Say what can be done on this machine, after really compiling and running a graph of one operator.

    \b
    Exit codes: 0 everything can be done · 11 something cannot. Needs no network and leaves nothing behind.
    """
    from qnn.doctor.gather import gather  # noqa: PLC0415
    from qnn.doctor.judge import judge  # noqa: PLC0415
    from qnn.errors.base import ExitCode  # noqa: PLC0415

    facts = gather(store)
    verdict = judge(facts)
    if as_json:
        from qnn.doctor.document import document  # noqa: PLC0415

        print_json(document(facts, verdict))
    else:
        for line in report(facts, verdict):
            out().print(line, markup=False)
    return int(ExitCode.OK if verdict.sound else ExitCode.SYSTEM)


def report(facts: Facts, verdict: Verdict) -> Iterator[str]:
    """The report as lines of plain text. Pure."""
    rows = [
        ("qnn-forge", facts.version),
        *_machine(facts.machine),
        *_toolchain(facts.toolchain),
        ("trial", _trial(facts.trial)),
        *((kit.name, f"{kit.folder}: {f'{kit.missing} is missing' if kit.missing else 'found'}") for kit in facts.kits),
        ("store", _store(facts)),
    ]
    yield from (f"{name:<14}{text}" for name, text in rows)
    yield ""
    for ability in verdict.abilities:
        reasons = ", ".join(ability.because)
        yield f"{ability.work:<14}{'yes' if ability.possible else f'no: {reasons}'}"
    for finding in verdict.findings:
        yield ""
        yield from _finding(finding)


def _machine(machine: Machine) -> list[tuple[str, str]]:
    from qnn.doctor.judge import gigabytes  # noqa: PLC0415

    libc = " ".join(machine.libc).strip() or "unknown C library"
    limit = ", a container's limit" if machine.memory_limited else ""
    return [
        ("machine", f"{machine.system} {machine.architecture}, {libc}, Python {machine.python}, {machine.cores} cores"),
        ("memory", f"{gigabytes(machine.memory_available)} free of {gigabytes(machine.memory_total)}{limit}"),
    ]


def _toolchain(toolchain: Toolchain) -> list[tuple[str, str]]:
    from qnn.doctor.judge import is_tested_pair  # noqa: PLC0415
    from qnn.toolchains.pip.toolchain import KNOWN_BUILDS  # noqa: PLC0415

    build = KNOWN_BUILDS.get(toolchain.onnxruntime_qnn or "", "build not known")
    pair = "a tested pair" if is_tested_pair(toolchain) else "not a tested pair"
    rows = [
        ("toolchain", f"pip, QAIRT {toolchain.qairt or 'not found'} ({build})"),
        (
            "packages",
            f"onnxruntime {toolchain.onnxruntime or 'missing'}, onnxruntime-qnn "
            f"{toolchain.onnxruntime_qnn or 'missing'}: {pair}",
        ),
    ]
    for number, library in enumerate(toolchain.libraries):
        size = "" if library.size is None else f"{library.size / 1e6:.1f} MB, "
        state = library.fault or "loads"
        rows.append(("libraries" if number == 0 else "", f"{library.name}: {size}{state}"))
    return rows


def _trial(trial: Trial) -> str:
    from qnn.doctor.facts import Failed, NotTried  # noqa: PLC0415

    if isinstance(trial, NotTried):
        return f"not tried: {trial.reason}"
    if isinstance(trial, Failed):
        return f"failed: it could not be {trial.step}"
    return (
        f"compiled, read back and run on the emulator in {trial.seconds:.1f} s; QAIRT build {trial.build_id}, "
        f"largest error {trial.worst:.2g}"
    )


def _store(facts: Facts) -> str:
    from qnn.doctor.judge import gigabytes  # noqa: PLC0415

    store = facts.store
    state = store.fault or ("writable" if store.exists else "can be made")
    return f"{store.path}: {state}, {gigabytes(store.free)} free"


def _finding(finding: Finding) -> Iterator[str]:
    head, *rest = finding.error.lines()
    yield f"{'error' if finding.stops else 'warning'}: {head}"
    yield from rest
