"""Makes bundles: asks the store for each stage's output and makes what is missing, from the bundle backwards.

A stage is asked for only by the stage that needs it, so a finished bundle costs one look. Threads that need the same
output meet at the store's lock; one makes it.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qnn.build import inputs
from qnn.build.chain import Run, Step, read_chain, run_chain
from qnn.build.chained import Chained, CompareChains, load_chain, save_chain
from qnn.build.compiled import compiled_facts, save_compiled
from qnn.build.events import Listener, Stage
from qnn.build.inputs import Turn
from qnn.build.judge import judge_chain, judge_graph
from qnn.build.keys import Keys
from qnn.build.measured import Measured, load_measured, save_measured
from qnn.build.package import PackageGraph
from qnn.child import HostPool, Limits
from qnn.chips.table import needs_fp16
from qnn.errors.base import ForgeError
from qnn.files import link_or_copy
from qnn.model.spec import Chain, Graph
from qnn.model_code import MetricSample
from qnn.plan.targets import Target, Variant
from qnn.prepare.prepared import PreparedGraph, load_prepared
from qnn.ranges.facts import load_ranges
from qnn.ranges.request import RangeRequest
from qnn.ranges.verdict import refusal
from qnn.store import Entry, StageKey, Store
from qnn.toolchains.protocol import CompileRequest, RunRequest, Toolchain
from qnn.verify.reference import ReferenceRequest

_RANGES_JOB = "qnn.ranges.job:measure_ranges"
_PACKAGE_JOB = "qnn.build.package:package_graph"
_COMPARE_CHAINS_JOB = "qnn.build.chained:compare_chains"


@dataclass(frozen=True)
class Folders:
    """Where a build keeps what is not a stage output: partial downloads, Python environments, logs."""

    downloads: Path
    environments: Path
    logs: Path


class Builder:
    """Builds targets with one toolchain. Thread-safe: one call of `bundle` per thread and target."""

    def __init__(
        self, store: Store, toolchain: Toolchain, pool: HostPool, folders: Folders, listener: Listener
    ) -> None:
        self._store = store
        self._toolchain = toolchain
        self._pool = pool
        self._folders = folders
        self._listener = listener
        self._failed: dict[str, ForgeError] = {}
        self._range_faults: dict[str, ForgeError | None] = {}
        self._guard = threading.Lock()
        self.keys = Keys(toolchain, store.code_memo)

    def finished(self, target: Target, *, verified: bool) -> Entry | None:
        """The bundle if it is in the store, whole."""
        return self._store.get(self.keys.bundle(target, verified))

    def bundle(self, target: Target, *, verified: bool) -> Entry:
        """The finished bundle of a target; raises the ForgeError of the first stage that fails.

        With `verified`, every graph was run from the package and passed its gates.
        """
        key = self.keys.bundle(target, verified)

        def produce(folder: Path) -> None:
            from qnn.build.assemble import Parts, assemble_bundle  # noqa: PLC0415 - a no-op needs none of it

            variant = target.variant
            graphs = variant.model.graphs
            package = self.package(target)
            measured = {graph.name: self.measured(target, graph) for graph in graphs if verified}
            for graph in graphs:
                if verified:
                    facts = load_prepared(self.prepared(variant, graph).folder)
                    judge_graph(target, graph.name, measured[graph.name], facts.faults, facts.changes)
            chain = variant.model.checks.chain
            chained = self.chained(target, chain) if verified and chain is not None else None
            if chained is not None:
                judge_chain(target, chained)
            licence = variant.model.licence.text
            parts = Parts(
                package=package,
                compiled={graph.name: self.compiled(target, graph) for graph in graphs},
                prepared={graph.name: self.prepared(variant, graph) for graph in graphs},
                exported={graph.name: self.exported(variant, graph) for graph in graphs if graph.export is not None},
                measured=measured,
                chained=chained,
                licence=None if licence is None else only_file(self.source(variant, licence)),
            )
            assemble_bundle(target, self.keys, parts, self._store.known, folder)

        return self._make(key, Stage("bundle", target.name), produce)

    def source(self, variant: Variant, name: str) -> Entry:
        """A fetched and verified source file."""
        source = variant.model.sources[name]

        def produce(folder: Path) -> None:
            fetched = inputs.fetch_source(variant.model, source, folder, self._folders.downloads)
            self._store.known.learn(fetched.path, fetched.sha256)

        return self._make(self.keys.source(source), Stage("fetch", f"{variant.model.name} {name}"), produce)

    def exported(self, variant: Variant, graph: Graph) -> Entry:
        """The ONNX file of a graph that comes from PyTorch."""
        key = self.keys.exported(variant, graph)

        def produce(folder: Path) -> None:
            room = self._code_room(variant, key)
            with self._pool.host() as host:
                inputs.export_graph(variant, graph, room, folder, host)

        return self._make(key, Stage("export", f"{variant.name} {graph.name}"), produce)

    def prepared(self, variant: Variant, graph: Graph) -> Entry:
        """A graph with fixed shapes, simplified, checked."""
        key = self.keys.prepared(variant, graph)

        def produce(folder: Path) -> None:
            name = None if graph.export else graph.source_for(variant.precision)
            with self._original(variant, graph, name) as source, self._pool.host() as host:
                inputs.prepare_graph(
                    variant, graph, source, folder, host, log=self._log(key), limits=limits_of(variant)
                )

        return self._make(key, Stage("prepare", f"{variant.name} {graph.name}"), produce)

    def samples(self, variant: Variant, graph: Graph) -> Entry:
        """Real inputs, 000.npz …"""
        key = self.keys.samples(variant, graph)

        def produce(folder: Path) -> None:
            facts = load_prepared(self.prepared(variant, graph).folder)
            if variant.model.checks.samples_dir is not None:
                with self._pool.host() as host:
                    inputs.shipped_samples(
                        variant.model, facts, folder, host, log=self._log(key), limits=limits_of(variant)
                    )
                return
            inputs.run_data(variant.model, facts, self._code_room(variant, key), folder)

        return self._make(key, Stage("samples", f"{variant.name} {graph.name}"), produce)

    def reference(self, variant: Variant, graph: Graph) -> Entry:
        """Float results of the original graph, 000.npz …"""
        key = self.keys.reference(variant, graph)

        def produce(folder: Path) -> None:
            samples = numbered(self.samples(variant, graph))
            with self._original(variant, graph, graph.reference) as source, self._pool.host() as host:
                request = ReferenceRequest(source, samples, folder, graph.outputs)
                log = self._log(key)
                inputs.run_reference(variant.model, graph, request, host, log=log, limits=limits_of(variant))
                if graph.export is not None:
                    inputs.hold_to_module(variant, graph, request, self._code_room(variant, key), host)

        return self._make(key, Stage("reference", f"{variant.name} {graph.name}"), produce)

    def ranges(self, variant: Variant, graph: Graph, samples: int = 1) -> Entry:
        """What leaves fp16 when the prepared graph runs in float on its first samples: ranges.json."""
        key = self.keys.ranges(variant, graph, samples)

        def produce(folder: Path) -> None:
            prepared = self.prepared(variant, graph).folder
            model = prepared / load_prepared(prepared).files[0]
            request = RangeRequest(graph.name, model, numbered(self.samples(variant, graph))[:samples], folder)
            with self._pool.host() as host:
                host.call(_RANGES_JOB, request, log=self._log(key), limits=limits_of(variant))

        return self._make(key, Stage("range", f"{variant.name} {graph.name}"), produce)

    def _require_range(self, variant: Variant, graph: Graph) -> None:
        """Raise LeavesFp16 (QF440), the same for every chip, where a float graph's outputs would come out wrong."""
        digest = self.keys.ranges(variant, graph, 1).digest
        if digest not in self._range_faults:
            known = variant.model.checks.ranges.get(graph.name, {})
            fault = refusal(load_ranges(self.ranges(variant, graph).folder), known)
            place = None if fault is None else inputs.place_of(variant.model, ("graphs", graph.name))
            with self._guard:
                self._range_faults.setdefault(digest, fault if place is None or fault is None else fault.at(place))
        found = self._range_faults[digest]
        if found is not None:
            raise found

    def compiled(self, target: Target, graph: Graph) -> Entry:
        """A context binary and its wrapper, read back and equal to the plan."""
        key = self.keys.compiled(target, graph)
        if needs_fp16(target.variant.precision):
            self._require_range(target.variant, graph)

        def produce(folder: Path) -> None:
            prepared = self.prepared(target.variant, graph)
            if graph.export is not None:
                self.reference(target.variant, graph)  # an export that computes something else is not worth compiling
            facts = load_prepared(prepared.folder)
            self._refuse_known_faults(target, facts)
            request = CompileRequest(
                graph=facts,
                prepared_folder=prepared.folder,
                soc=target.soc,
                precision=target.variant.precision,
                output=folder,
            )
            with self._pool.host() as host:
                binary = self._toolchain.compile(request, host, log=self._log(key), limits=limits_of(target.variant))
            save_compiled(compiled_facts(binary), folder)

        return self._make(key, Stage("compile", f"{target.name} {graph.name}"), produce)

    @staticmethod
    def _refuse_known_faults(target: Target, facts: PreparedGraph) -> None:
        """Raise KnownFault (QF450) where this chip is known to compute the graph wrongly in this precision."""
        if not facts.faults:
            return
        from qnn.faults.judge import refusal as known_fault  # noqa: PLC0415 - reads the table

        fault = known_fault(facts.graph, target.soc.name, target.soc.arch, target.variant.precision, facts.faults)
        if fault is not None:
            raise fault

    def package(self, target: Target) -> Entry:
        """What will be handed out, but for the manifest: binaries, wrappers, golden inputs and outputs."""
        key = self.keys.package(target)

        def produce(folder: Path) -> None:
            for graph in target.variant.model.graphs:
                request = PackageGraph(
                    facts=load_prepared(self.prepared(target.variant, graph).folder),
                    compiled=self.compiled(target, graph).folder,
                    samples=numbered(self.samples(target.variant, graph)),
                    references=numbered(self.reference(target.variant, graph)),
                    folder=folder,
                )
                with self._pool.host() as host:
                    host.call(_PACKAGE_JOB, request, log=self._log(key), limits=limits_of(target.variant))

        return self._make(key, Stage("package", target.name), produce)

    def measured(self, target: Target, graph: Graph) -> Measured:
        """What the packaged binary computes, compared with the reference, and the task metric of both."""
        samples = numbered(self.samples(target.variant, graph))
        reference = numbered(self.reference(target.variant, graph))
        entry = self._run(target, graph)
        outputs = load_measured(entry.folder)
        if target.variant.model.checks.metric is None:
            return Measured(outputs, ())
        metric_key = self.keys.metrics(target, graph)

        def evaluate(folder: Path) -> None:
            files = [MetricSample(*paths) for paths in zip(samples, reference, numbered(entry), strict=True)]
            room = self._code_room(target.variant, metric_key)
            inputs.run_metric(target.variant.model, graph.name, files, room, folder)

        metric = self._make(metric_key, Stage("metric", f"{target.name} {graph.name}"), evaluate)
        return Measured(outputs, inputs.load_metric(metric.folder))

    def _run(self, target: Target, graph: Graph) -> Entry:
        """The emulator's outputs on the samples, 000.npz …, and their comparison with the reference."""
        key = self.keys.measured(target, graph)
        samples = numbered(self.samples(target.variant, graph))
        reference = numbered(self.reference(target.variant, graph))

        def produce(folder: Path) -> None:
            request = RunRequest(
                graph=graph.name,
                outputs=self._output_names(target.variant, graph),
                folder=self.package(target).folder,
                soc_id=target.soc.soc_id,
                samples=samples,
                references=reference,
                output=folder,
            )
            with self._pool.host() as host:
                outputs = self._toolchain.run(request, host, log=self._log(key), limits=limits_of(target.variant))
            save_measured(outputs, folder)

        return self._make(key, Stage("verify", f"{target.name} {graph.name}"), produce)

    def chain_reference(self, variant: Variant, chain: Chain) -> Entry:
        """The graphs as a chain on float: the steps of qnn.build.chain."""
        key = self.keys.chain_reference(variant, chain)

        def produce(folder: Path) -> None:
            log = self._log(key)

            def run(graph: Graph, samples: tuple[Path, ...], output: Path) -> None:
                with self._original(variant, graph, graph.reference) as source, self._pool.host() as host:
                    request = ReferenceRequest(source, samples, output, graph.outputs)
                    inputs.run_reference(variant.model, graph, request, host, log=log, limits=limits_of(variant))

            self._chain(variant, chain, self.reference(variant, variant.model.graphs[0]), run, log, folder)

        return self._make(key, Stage("chain", f"{variant.name} float"), produce)

    def chained(self, target: Target, chain: Chain) -> Chained:
        """What the packaged graphs compute as a chain, compared with the float chain, and the metric of both."""
        variant, graphs = target.variant, target.variant.model.graphs
        key = self.keys.chain(target, chain)
        truth = read_chain(self.chain_reference(variant, chain).folder, len(graphs))
        names = {graph.name: self._output_names(variant, graph) for graph in graphs}

        def produce(folder: Path) -> None:
            log, package = self._log(key), self.package(target).folder

            def run(graph: Graph, samples: tuple[Path, ...], output: Path) -> None:
                request = RunRequest(
                    graph.name, names[graph.name], package, target.soc.soc_id, samples, references=(), output=output
                )
                with self._pool.host() as host:
                    self._toolchain.run(request, host, log=log, limits=limits_of(variant))

            self._chain(variant, chain, self._run(target, graphs[0]), run, log, folder)
            request = CompareChains(truth, read_chain(folder, len(graphs)), tuple(names.items()))
            with self._pool.host() as host:
                save_chain(host.call(_COMPARE_CHAINS_JOB, request, log=log, limits=limits_of(variant)), folder)

        entry = self._make(key, Stage("chain", target.name), produce)
        compared = load_chain(entry.folder)
        if chain.metric is None:
            return Chained(compared, ())
        metric_key = self.keys.chain_metric(target, chain)

        def evaluate(folder: Path) -> None:
            room = self._code_room(variant, metric_key)
            steps = (truth, read_chain(entry.folder, len(graphs)))
            inputs.run_chain_metric(variant.model, chain, steps, room, folder)

        metric = self._make(metric_key, Stage("metric", f"{target.name} chain"), evaluate)
        return Chained(compared, inputs.load_metric(metric.folder))

    def _chain(self, variant: Variant, chain: Chain, first: Entry, run: Run, log: Path, folder: Path) -> None:
        """Run the graphs by `run` as a chain, its steps kept in `folder`; `first` has the first graph's results."""
        graphs, room = variant.model.graphs, self._room(variant, log)

        def feed(graph: Graph, turn: int, steps: Sequence[Step], output: Path) -> tuple[Path, ...]:
            facts = load_prepared(self.prepared(variant, graph).folder)
            return inputs.run_feed(variant.model, chain, Turn(facts, turn, steps), room, output)

        step = Step(graphs[0].name, 0, numbered(self.samples(variant, graphs[0])), numbered(first))
        run_chain(graphs, chain.rounds, step, feed=feed, run=run, folder=folder)

    def _output_names(self, variant: Variant, graph: Graph) -> tuple[str, ...]:
        return tuple(output.name for output in load_prepared(self.prepared(variant, graph).folder).outputs)

    @contextmanager
    def _original(self, variant: Variant, graph: Graph, name: str | None) -> Iterator[Path]:
        """The ONNX file that a graph starts from, with its external data beside it: the export, or the source named."""
        if name is None:
            yield self.exported(variant, graph).folder / f"{graph.name}.onnx"
            return
        file = only_file(self.source(variant, name))
        beside = variant.model.sources[name].beside
        if not beside:
            yield file
            return
        with tempfile.TemporaryDirectory(prefix="beside-", dir=self._store.root / "tmp") as folder:
            for path in (file, *(only_file(self.source(variant, other)) for other in beside)):
                link_or_copy(path, Path(folder) / path.name)
            yield Path(folder) / file.name

    def _code_room(self, variant: Variant, key: StageKey) -> inputs.CodeRoom:
        """Every source of a model is there for its own code to read."""
        return self._room(variant, self._log(key))

    def _room(self, variant: Variant, log: Path) -> inputs.CodeRoom:
        sources = {name: only_file(self.source(variant, name)) for name in variant.model.sources}
        return inputs.CodeRoom(sources, self._folders.environments, log, limits_of(variant))

    def measured_already(self, target: Target) -> Iterator[tuple[Graph, int, Measured]]:
        """What the store has of a target's numbers, with the size of each binary in bytes; makes nothing.

        This is what is known of a bundle that missed a gate.
        """
        for graph in target.variant.model.graphs:
            compiled = self._store.get(self.keys.compiled(target, graph))
            measured = self._store.get(self.keys.measured(target, graph))
            if compiled is None or measured is None:
                continue
            metric = None
            if target.variant.model.checks.metric is not None:
                metric = self._store.get(self.keys.metrics(target, graph))
            values = () if metric is None else inputs.load_metric(metric.folder)
            yield graph, compiled.file(f"{graph.name}.bin").size, Measured(load_measured(measured.folder), values)

    def _make(self, key: StageKey, stage: Stage, produce: Callable[[Path], None]) -> Entry:
        """The stage's entry; what failed once in this run fails at once for everything else that needs it."""
        digest = key.digest
        known = self._failed.get(digest)
        if known is not None:
            raise known
        began = time.monotonic()
        announced = False

        def announce_and_produce(folder: Path) -> None:
            nonlocal announced
            announced = True
            if digest in self._failed:  # another thread failed at it while this one waited for the lock
                raise self._failed[digest]
            self._listener.begins(stage)
            produce(folder)

        try:
            made = self._store.make(key, announce_and_produce)
        except ForgeError as error:
            with self._guard:
                self._failed.setdefault(digest, error)
            if announced:
                self._listener.fails(stage)
            raise
        self._listener.ends(stage, time.monotonic() - began, reused=made.reused)
        return made.entry

    def _log(self, key: StageKey) -> Path:
        """The stage's log; what an earlier attempt left is removed."""
        log = self._folders.logs / f"{key.stage}-{key.digest[:16]}.log"
        log.unlink(missing_ok=True)
        return log


def limits_of(variant: Variant) -> Limits:
    """What one child may use for this model."""
    own = variant.model.limits
    return Limits(seconds=own.minutes * 60, memory_bytes=int(own.memory_gb * 2**30))


def only_file(entry: Entry) -> Path:
    """The one file of a source entry."""
    (file,) = entry.files
    return entry.folder / file.name


def numbered(entry: Entry) -> tuple[Path, ...]:
    """The entry's .npz files in order."""
    return tuple(entry.folder / file.name for file in entry.files if file.name.endswith(".npz"))
