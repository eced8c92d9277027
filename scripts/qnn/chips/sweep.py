"""Ask the installed compiler for every chip: two small compiles an id.

Each runs in a forked child of its own, because the compiler keeps state from one compile to the next and some ids may
crash it. What the answers mean is decided in qnn.chips.differences.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from qnn.child import Host, HostPool, Limits
from qnn.chips.probe import Answer, Probe, ProbeGraph, Refusal
from qnn.chips.table import ChipTable
from qnn.errors.base import ForgeError

# Beyond the table's own ids all of these are asked, so that new chips are found. QAIRT 2.51 ends at 123.
_ASKED = range(1, 201)
_LIMITS = Limits(seconds=60.0, memory_bytes=4 << 30)
_JOB = "qnn.chips.probe:probe"
# Imported once by each host instead of once by each of some 300 children.
_PRELOAD = ("numpy", "onnx", "onnxruntime", "qnn.binary", "qnn.toolchains.pip.session")


@dataclass(frozen=True)
class Crash:
    """The compiler did not survive the probe, or hung."""

    message: str


Reply = Answer | Refusal | Crash


@dataclass(frozen=True)
class Observation:
    """What the compiler did with one soc_id: the quantized graph, and the fp16 one unless the first gave nothing."""

    soc_id: int
    quantized: Reply
    fp16: Reply | None = None


def ids_to_ask(table: ChipTable) -> tuple[int, ...]:
    """The table's ids, those of known chips without an HTP, and 1 to 200."""
    known = {soc.soc_id for soc in table.socs} | {other.soc_id for other in table.others if other.soc_id is not None}
    return tuple(sorted(known.union(_ASKED)))


def ask_compiler(
    ids: Sequence[int], on_answer: Callable[[Observation], None], workers: int | None = None
) -> tuple[Observation, ...]:
    """What the installed compiler says of each id. `on_answer` is called from worker threads as answers come.

    About 0.15 s an id that exists on one core. A crash or hang of the compiler is part of the observation.
    """
    workers = workers or len(os.sched_getaffinity(0))

    def ask(soc_id: int) -> Observation:
        with pool.host() as host:
            found = _observe(soc_id, host)
        on_answer(found)
        return found

    with HostPool(workers, _PRELOAD) as pool, ThreadPoolExecutor(workers) as threads:
        return tuple(threads.map(ask, ids))


def _observe(soc_id: int, host: Host) -> Observation:
    quantized = _reply(Probe(soc_id, ProbeGraph.QUANTIZED), host)
    if not isinstance(quantized, Answer):
        return Observation(soc_id, quantized)
    return Observation(soc_id, quantized, _reply(Probe(soc_id, ProbeGraph.FP16), host))


def _reply(request: Probe, host: Host) -> Reply:
    with tempfile.TemporaryDirectory(prefix="qnn-forge-probe-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        try:
            reply: Answer | Refusal = host.call(_JOB, request, log=Path(folder) / "log", limits=_LIMITS, cwd=work)
        except ForgeError as error:
            return Crash("; ".join((error.message, *error.details[-1:])))
        return reply
