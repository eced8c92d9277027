"""Runs a build plan: targets in parallel, results in the plan's order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from qnn.build.builder import Builder
from qnn.build.events import Listener, Silence, Stage
from qnn.build.install import install
from qnn.build.keys import Keys, bundle_name
from qnn.build.results import TargetResult, graph_results, measured_result
from qnn.build.variants import Folders, VariantBuilder
from qnn.child import HostPool
from qnn.child.client import PRELOAD
from qnn.chips.table import needs_fp16
from qnn.errors.base import ForgeError
from qnn.plan.targets import BuildPlan, Target, Variant
from qnn.store import Store
from qnn.toolchains.pip.toolchain import PipToolchain

# What every compile and run imports is imported once a host, not once a job.
_PRELOAD = (*PRELOAD, "qnn.toolchains.pip.jobs")


@dataclass(frozen=True)
class BuildRequest:
    """A whole build. `policy` is all, per-arch or none; `jobs` how many child processes may run at once."""

    plan: BuildPlan
    policy: str
    out: Path
    store: Path
    jobs: int
    keep_going: bool


def run_build(request: BuildRequest, listener: Listener) -> tuple[TargetResult, ...]:
    """Build every target; a target that failed carries its error. Without keep_going, what follows is left out."""
    toolchain = PipToolchain()
    hosts = max(1, min(request.jobs, len(request.plan.targets)))
    with Store(request.store) as store, HostPool(hosts, _PRELOAD) as pool:
        builder = Builder(store, toolchain, pool, folders_of(request.store), listener)
        to_verify = verified_targets(request.plan.targets, request.policy)

        def one(target: Target) -> TargetResult:
            return _build_one(builder, target, request.out, verified=target.name in to_verify, listener=listener)

        return tuple(_in_order(one, request, pool))


def run_prepare(variants: Sequence[Variant], store: Path, jobs: int) -> None:
    """Make all that does not depend on the chip; raises the first ForgeError."""
    with Store(store) as opened, HostPool(jobs) as pool:
        builder = VariantBuilder(opened, PipToolchain(), pool, folders_of(store), Silence())
        for variant in variants:
            for graph in variant.model.graphs:
                builder.reference(variant, graph)  # needs the samples, which need the prepared graph
                if needs_fp16(variant.precision):
                    builder.ranges(variant, graph)  # judged where it matters, before a compile
            if variant.model.checks.chain is not None:
                builder.chain_reference(variant, variant.model.checks.chain)
            for name in variant.model.sources:
                builder.source(variant, name)


def preview(request: BuildRequest) -> list[tuple[Target, bool, bool]]:
    """(target, whether the store has its bundle, whether it would be verified) in the plan's order."""
    toolchain = PipToolchain()
    to_verify = verified_targets(request.plan.targets, request.policy)
    with Store(request.store) as store:
        keys = Keys(toolchain, store.code_memo)
        return [
            (target, store.get(keys.bundle(target, target.name in to_verify)) is not None, target.name in to_verify)
            for target in request.plan.targets
        ]


def folders_of(store: Path) -> Folders:
    """Where a build on this store keeps downloads, environments and logs."""
    root = store.absolute()
    return Folders(downloads=root / "downloads", environments=root / "environments", logs=root / "logs")


def verified_targets(targets: Sequence[Target], policy: str) -> frozenset[str]:
    """Names of the targets that are run on the emulator: all, none, or the first chip of each arch of every variant."""
    if policy == "all":
        return frozenset(target.name for target in targets)
    if policy == "none":
        return frozenset()
    first: dict[tuple[str, str], Target] = {}
    for target in targets:
        first.setdefault((target.variant.name, target.soc.arch), target)
    return frozenset(target.name for target in first.values())


def _in_order(one: Callable[[Target], TargetResult], request: BuildRequest, pool: HostPool) -> Iterator[TargetResult]:
    """Results in the plan's order. After a failure, targets not yet begun are left out unless keep_going."""
    executor = ThreadPoolExecutor(max_workers=request.jobs)
    futures: list[Future[TargetResult | None]] = []
    stop = False

    def guarded(target: Target) -> TargetResult | None:
        nonlocal stop
        if stop:
            return None
        result = one(target)
        stop = stop or (result.error is not None and not request.keep_going)
        return result

    try:
        futures = [executor.submit(guarded, target) for target in request.plan.targets]
        for future in futures:
            result = future.result()
            if result is not None:
                yield result
    except BaseException:
        stop = True
        pool.abort()  # threads that wait for a job see it die, so the executor can end
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _build_one(builder: Builder, target: Target, out: Path, *, verified: bool, listener: Listener) -> TargetResult:
    began = time.monotonic()
    name = bundle_name(target, builder.keys.toolchain)
    try:
        reused = builder.finished(target, verified=verified)
        entry = reused or builder.bundle(target, verified=verified)
        folder, archive = install(entry, name, out)
    except ForgeError as error:
        listener.fails(Stage("target", target.name))
        graphs = tuple(
            measured_result(graph.name, size, measured, target.variant.model.checks.metric_gates.get(graph.name, {}))
            for graph, size, measured in builder.measured_already(target)
        )
        return TargetResult(target, graphs, None, None, None, verified, False, time.monotonic() - began, error)
    graphs = graph_results(entry.folder / name)
    for graph in graphs:
        builder.tell(target.variant, graph.graph, graph.remarks)  # a finished bundle has them in its manifest
    listener.ends(Stage("target", target.name), time.monotonic() - began, reused=reused is not None)
    return TargetResult(
        target=target,
        graphs=graphs,
        folder=folder,
        archive=archive,
        sha256=entry.file(archive.name).sha256,
        verified=verified,
        reused=reused is not None,
        seconds=time.monotonic() - began,
    )
