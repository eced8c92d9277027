"""Checking one bundle on one device, from finding out what it is to the outcome. Whoever calls shows and decides."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from qnn.bundle.manifest import Manifest
from qnn.bundle.recheck import MANIFEST, check_files, read_manifest
from qnn.chips.soc import Soc
from qnn.chips.table import load_table
from qnn.device.adb import Device, Said
from qnn.device.catalogue import recognise
from qnn.device.facts import chip_of, read_facts
from qnn.device.fallback import advice, require_chip
from qnn.device.native import read_binary, to_golden
from qnn.device.net_run import WARM_UPS, Latency, Place, check_line, elapsed, latency, output_files, timed_line
from qnn.device.paths import command, fit, fit_root
from qnn.device.report import GraphOutcome, Outcome
from qnn.device.runtime import RuntimeFile, find_net_run, find_viewer, require_abi, require_runtime
from qnn.device.staging import StagedGraph, bring, remote_digest, stage_bundle, stage_files
from qnn.errors.base import ForgeError
from qnn.errors.device import (
    BundleForOtherChip,
    DeviceChipUnknown,
    DeviceLost,
    DeviceNumbersMiss,
    NetRunFailed,
    NetRunMissing,
    OutputsMissing,
    RuntimeTooOld,
    RuntimeUnusable,
)
from qnn.index.document import VersionIndex
from qnn.model.spec import Gates
from qnn.store import file_digest
from qnn.verify.comparison import Kind, OutputComparison, merge
from qnn.verify.gates import Verdict, judge

_PROFILE = "qnn-profiling-data_0.log"
_VIEWER_SECONDS = 120.0


@dataclass(frozen=True)
class Wishes:
    """How a bundle is to be checked.

    `libraries` is an archive of `qnn-forge libs`, `sdk` an unpacked QAIRT SDK, `net_run` a file. `root` is our folder
    on the device. `runs` is how many inferences are timed, 0 for none; `seconds` the most that one qnn-net-run may
    take. `log` receives all that qnn-net-run says.
    """

    libraries: Path | None
    sdk: Path | None
    net_run: Path | None
    root: str
    runs: int
    seconds: float
    log: Path | None
    tell: Callable[[str], None]


def check(folder: Path, device: Device, wishes: Wishes, entry: Callable[[], VersionIndex | None]) -> Outcome:
    """Check the bundle in `folder`; `entry` gets its index entry where there is one. The outcome may be a miss.

    The index is asked only where the device cannot run the bundle, for what else there is.

    Raises the bundle errors QF701, QF702 and QF625, and QF784 to QF795.
    """
    root = fit_root(wishes.root)
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    facts = read_facts(device)
    with _advised(manifest, entry):
        chip = chip_of(facts, load_table())
    with tempfile.TemporaryDirectory(prefix="qnn-forge-device-") as scratch, _advised(manifest, entry, chip):
        require_chip(manifest, chip)
        require_abi(facts)
        room = Path(scratch)
        runtime = require_runtime(wishes.libraries, wishes.sdk, room / "libraries", chip, manifest.toolchain.qairt)
        program = find_net_run(wishes.net_run, wishes.sdk, facts.net_runs)
        bundle, graphs = stage_bundle(folder, manifest, room / "bundle")
        ours = [program] if isinstance(program, RuntimeFile) else []
        libraries = stage_files([(file.name, file.path) for file in (*runtime.libraries, *ours)])
        place = Place(
            bundle=f"{root}/{bundle.digest}",
            libraries=f"{root}/{libraries.digest}",
            program=fit(program) if isinstance(program, str) else f"{root}/{libraries.digest}/{program.name}",
            output=f"{root}/run-{bundle.digest}",
        )
        sent = bring(device, libraries, place.libraries, wishes.tell) + bring(device, bundle, place.bundle, wishes.tell)
        wishes.tell(f"{sent} of {len(libraries.files) + len(bundle.files)} files sent")
        if ours:
            device.do(command("chmod", "755", place.program), f"make {place.program} a program")
        net_run_sha256 = ours[0].sha256 if ours else remote_digest(device, place.program)
        with _outputs(device, place.output):
            outcomes = tuple(_check_graph(device, place, graph, manifest, wishes, room) for graph in graphs)
    return Outcome(manifest, file_digest(folder / MANIFEST), facts, chip, runtime, net_run_sha256, outcomes)


def miss(outcome: Outcome) -> DeviceNumbersMiss | None:
    """The error for outputs that miss their gates (QF796); None when all keep them. Pure."""
    failed = [
        (graph.graph, comparison, verdict)
        for graph in outcome.graphs
        for comparison, verdict in zip(graph.outputs, graph.verdicts, strict=True)
        if not verdict.passed
    ]
    if not failed:
        return None
    lines = [
        f"{graph} {verdict.output}: {failure.sentence}" for graph, _, verdict in failed for failure in verdict.failures
    ]
    lines += [
        f"{graph} {verdict.output}: it is zero everywhere, see docs/device-errors/zeros.md"
        for graph, comparison, verdict in failed
        # By its definition a cosine is exactly 0 only where one side is zero.
        if comparison.kind is Kind.FLOAT and comparison.comparable and comparison.cosine == 0.0 < comparison.peak
    ]
    if outcome.runtime.build_id != outcome.manifest.toolchain.build_id:
        lines.append(
            f"the bundle was made by {outcome.manifest.toolchain.build_id}, "
            f"the runtime on the device is {outcome.runtime.build_id}"
        )
    names = ", ".join(f"{graph} {verdict.output}" for graph, _, verdict in failed)
    return DeviceNumbersMiss(
        f"{outcome.chip.name}: {names} is not what the bundle's golden outputs say",
        remedy="run `qnn-forge verify` on the bundle; take libraries of the bundle's own QAIRT build",
        details=lines,
    )


def clean(device: Device, root: str) -> None:
    """Remove everything that checks left on the device. Raises UnfitDevicePath (QF792), DeviceRefused (QF785)."""
    device.do(command("rm", "-rf", "--", fit_root(root)), f"remove {root}")


@contextmanager
def _advised(manifest: Manifest, entry: Callable[[], VersionIndex | None], chip: Soc | None = None) -> Iterator[None]:
    """Where the device cannot run the bundle, the error also says what else there is."""
    try:
        yield
    except (DeviceChipUnknown, BundleForOtherChip, RuntimeUnusable, NetRunMissing, RuntimeTooOld) as error:
        try:
            lines = advice(manifest, entry(), chip)
        except ForgeError as fault:  # no reason to hide what is wrong with the device
            lines = (*advice(manifest, None, chip), f"the index was not read: {fault.message}")
        error.details = (*error.details, *lines)
        raise


@contextmanager
def _outputs(device: Device, folder: str) -> Iterator[None]:
    """An empty folder for outputs, gone afterwards; what a run that was cut off left in it goes first."""
    device.do(f"{command('rm', '-rf', '--', folder)} && {command('mkdir', '-p', folder)}", f"make {folder}")
    try:
        yield
    except DeviceLost:
        raise  # nobody is there to tidy up; the next run does
    except BaseException:
        device.run(command("rm", "-rf", "--", folder))
        raise
    device.do(command("rm", "-rf", "--", folder), f"remove {folder}")


def _check_graph(
    device: Device, place: Place, staged: StagedGraph, manifest: Manifest, wishes: Wishes, room: Path
) -> GraphOutcome:
    graph = staged.graph
    wishes.tell(f"running {graph.name}")
    own = Place(place.bundle, place.libraries, place.program, f"{place.output}/{graph.name}")
    device.do(command("mkdir", "-p", own.output), f"make {own.output}")
    _net_run(device, check_line(own, staged.binary, staged.input_list), graph.name, wishes)
    fetched = room / "outputs" / graph.name
    fetched.mkdir(parents=True)
    device.pull(own.output, fetched)
    outputs = _compare(fetched, staged)
    # A bundle that was not verified when it was made carries no gates of its own, so the defaults hold.
    gates = {numeric.name: numeric.gates for numeric in graph.numerics}
    verdicts: tuple[Verdict, ...] = tuple(
        judge(output, gates.get(output.name, Gates()), None, manifest.precision) for output in outputs
    )
    took = _time(device, own, staged, wishes, room) if wishes.runs else None
    return GraphOutcome(graph.name, staged.binary, outputs, verdicts, took)


def _compare(fetched: Path, staged: StagedGraph) -> tuple[OutputComparison, ...]:
    from qnn.verify.compare import compare_sample  # noqa: PLC0415 - NumPy

    paths = [path.relative_to(fetched).as_posix() for path in fetched.rglob("*") if path.is_file()]
    samples: list[list[OutputComparison]] = []
    for number, reference in enumerate(staged.references):
        names = [pair.binary.name for pair in staged.outputs]
        files = output_files(paths, names, number, staged.graph.name)
        samples.append([])
        for pair in staged.outputs:
            file = fetched / files[pair.binary.name]
            try:
                stored = read_binary(pair, file.read_bytes())
            except ValueError:
                raise OutputsMissing(
                    f"{staged.graph.name}: {pair.golden.name} of sample {number} came as {file.stat().st_size} bytes, "
                    f"which are no {pair.binary.dtype}{list(pair.binary.shape)}",
                    remedy="take a qnn-net-run that knows --use_native_output_files, of the libraries' QAIRT",
                ) from None
            samples[-1].append(compare_sample(pair.golden.name, reference[pair.golden.name], to_golden(pair, stored)))
    return tuple(reduce(merge, of_one) for of_one in zip(*samples, strict=True))


def _time(device: Device, place: Place, staged: StagedGraph, wishes: Wishes, room: Path) -> Latency:
    times = []
    for count in (WARM_UPS, WARM_UPS + wishes.runs):
        line = timed_line(place, staged.binary, staged.input_list, count)
        times.append(elapsed(_net_run(device, line, staged.graph.name, wishes).out))
    profile, viewer = "", find_viewer(wishes.sdk)
    if viewer is not None:
        target = room / "profiles" / staged.graph.name
        target.mkdir(parents=True)
        device.pull(f"{place.output}/{_PROFILE}", target)
        profile = _view(viewer, target / _PROFILE)
    return latency(wishes.runs, times[0], times[1], profile)


def _view(viewer: Path, log: Path) -> str:
    """The profile as text; "" where the viewer fails: times are not what a check is for."""
    try:
        done = subprocess.run(
            [str(viewer), "--input_log", str(log)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_VIEWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


def _net_run(device: Device, line: str, graph: str, wishes: Wishes) -> Said:
    said = device.run(line, seconds=wishes.seconds)
    if wishes.log is not None:
        with wishes.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {line}\n{said.out}{said.err}\n")
    known = recognise(f"{said.out}\n{said.err}")
    if not said.code:
        return said
    if known:
        first = known[0]
        raise NetRunFailed(
            f"{graph}: {first.label}",
            remedy=f"{first.fix[0]} ({first.page})",
            details=[*said.lines, *(f"{one.label}: {one.page}" for one in known)],
        )
    raise NetRunFailed(
        f"{graph}: qnn-net-run ended with {said.code}, and nothing it said is known",
        remedy="read what it said (--log FILE keeps all of it); see docs/device-errors/README.md",
        details=said.lines,
    )
