"""Measure the whole table with the installed compiler, and say where it no longer holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from qnn.child import Host, HostPool, Limits
from qnn.chips.table import ChipTable
from qnn.errors.base import ForgeError
from qnn.errors.faults import FaultsDiffer
from qnn.faults.probe import ProbeRequest, Seen
from qnn.faults.table import Fault, Probe, Shown

_JOB = "qnn.faults.probe:run_probe"
_LIMITS = Limits(seconds=120.0, memory_bytes=4 << 30)
_PRELOAD = ("numpy", "onnx", "onnxruntime", "qnn.faults.probe", "qnn.prepare.pipeline", "qnn.toolchains.pip.session")


@dataclass(frozen=True)
class Measured:
    """One probe of one entry: what the table says, what was seen as it is and after preparation."""

    fault: Fault
    probe: Probe
    raw: Seen
    mended: Seen | None

    @property
    def word(self) -> str:
        """holds, gone (the compiler is right now), changed (wrong in another way), unmended (the rewrite fails)."""
        if self.raw.shown is Shown.RIGHT and self.probe.raw is not Shown.RIGHT:
            return "gone"
        if self.raw.shown is not self.probe.raw:
            return "changed"
        if self.mended is not None and self.mended.shown is not self.probe.mended:
            return "unmended"
        return "holds"


def measure(
    faults: Sequence[Fault], chips: ChipTable, on_probe: Callable[[Measured], None], workers: int | None = None
) -> tuple[Measured, ...]:
    """Every probe of these entries, in the table's order. `on_probe` is called from worker threads as answers come."""
    workers = workers or len(os.sched_getaffinity(0))
    asked = [(fault, probe) for fault in faults for probe in fault.probes]

    def ask(pair: tuple[Fault, Probe]) -> Measured:
        fault, probe = pair
        with pool.host() as host:
            raw = _seen(host, probe, chips, prepared=False)
            mended = None if probe.mended is None else _seen(host, probe, chips, prepared=True)
        found = Measured(fault, probe, raw, mended)
        on_probe(found)
        return found

    with HostPool(workers, _PRELOAD) as pool, ThreadPoolExecutor(workers) as threads:
        return tuple(threads.map(ask, asked))


def require_agreement(measured: Sequence[Measured]) -> None:
    """Raise FaultsDiffer (QF451) with a line for every probe that shows something else than the table says."""
    different = [found for found in measured if found.word != "holds"]
    if different:
        raise FaultsDiffer(
            f"{len(different)} of {len(measured)} probes show something else than the table of known faults says",
            remedy="update scripts/qnn/faults/faults.yaml, and the rewrites it names",
            details=[_line(found) for found in different],
        )


def _line(found: Measured) -> str:
    said = f"{found.probe.raw}" + (f", {found.probe.mended} after preparation" if found.probe.mended else "")
    seen = f"{found.raw.shown} ({found.raw.detail})"
    if found.mended is not None:
        seen += f", after preparation {found.mended.shown} ({found.mended.detail})"
    return f"{found.fault.id}, {found.probe.graph} on {found.probe.soc}: {found.word}: table {said}; seen {seen}"


def _seen(host: Host, probe: Probe, chips: ChipTable, *, prepared: bool) -> Seen:
    with tempfile.TemporaryDirectory(prefix="qnn-forge-fault-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        request = ProbeRequest(probe.graph, chips.lookup(probe.soc), prepared)
        try:
            seen: Seen = host.call(_JOB, request, log=Path(folder) / "log", limits=_LIMITS, cwd=work)
        except ForgeError as error:  # a crash or a hang of the compiler
            return Seen(Shown.FAILS, error.message)
        return seen
