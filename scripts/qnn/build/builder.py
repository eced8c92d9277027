"""Makes bundles: asks the store for each stage's output and makes what is missing, from the bundle backwards.

A stage is asked for only by the stage that needs it, so a finished bundle costs one look. Threads that need the same
output meet at the store's lock; one makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qnn.build import inputs
from qnn.build.chain import read_chain
from qnn.build.chained import Chained, CompareChains, load_chain, save_chain
from qnn.build.compiled import compiled_facts, save_compiled
from qnn.build.events import Listener, Stage
from qnn.build.judge import judge_chain, judge_graph
from qnn.build.maker import limits_of, numbered, only_file
from qnn.build.measured import Measured, load_measured, save_measured
from qnn.build.package import PackageGraph
from qnn.build.variants import Folders, VariantBuilder
from qnn.child import HostPool
from qnn.model.spec import Chain, Graph
from qnn.model_code import MetricSample
from qnn.plan.targets import Target
from qnn.prepare.prepared import PreparedGraph, load_prepared
from qnn.store import Entry, Store
from qnn.toolchains.protocol import CompileRequest, RunRequest, Toolchain

_PACKAGE_JOB = "qnn.build.package:package_graph"
_COMPARE_CHAINS_JOB = "qnn.build.chained:compare_chains"


class Builder(VariantBuilder):
    """Builds targets with one toolchain. Thread-safe: one call of `bundle` per thread and target."""

    def __init__(
        self, store: Store, toolchain: Toolchain, pool: HostPool, folders: Folders, listener: Listener
    ) -> None:
        super().__init__(store, toolchain, pool, folders, listener)
        self._toolchain = toolchain

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
            remarks = {graph.name: self.range_remarks(variant, graph) for graph in graphs}
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
                remarks=remarks,
                measured=measured,
                chained=chained,
                licence=None if licence is None else only_file(self.source(variant, licence)),
            )
            assemble_bundle(target, self.keys, parts, self._store.known, folder)

        return self._maker.make(key, Stage("bundle", target.name), produce)

    def compiled(self, target: Target, graph: Graph) -> Entry:
        """A context binary and its wrapper, read back and equal to the plan."""
        key = self.keys.compiled(target, graph)
        self.range_remarks(target.variant, graph)

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
                binary = self._toolchain.compile(
                    request, host, log=self._maker.log(key), limits=limits_of(target.variant)
                )
            save_compiled(compiled_facts(binary), folder)

        return self._maker.make(key, Stage("compile", f"{target.name} {graph.name}"), produce)

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
                    host.call(_PACKAGE_JOB, request, log=self._maker.log(key), limits=limits_of(target.variant))

        return self._maker.make(key, Stage("package", target.name), produce)

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

        metric = self._maker.make(metric_key, Stage("metric", f"{target.name} {graph.name}"), evaluate)
        return Measured(outputs, inputs.load_metric(metric.folder))

    def _run(self, target: Target, graph: Graph) -> Entry:
        """The emulator's outputs on the samples, 000.npz …, and their comparison with the reference."""
        key = self.keys.measured(target, graph)
        samples = numbered(self.samples(target.variant, graph))
        reference = numbered(self.reference(target.variant, graph))

        def produce(folder: Path) -> None:
            request = RunRequest(
                graph=graph.name,
                outputs=self.output_names(target.variant, graph),
                folder=self.package(target).folder,
                soc_id=target.soc.soc_id,
                samples=samples,
                references=reference,
                output=folder,
            )
            with self._pool.host() as host:
                outputs = self._toolchain.run(request, host, log=self._maker.log(key), limits=limits_of(target.variant))
            save_measured(outputs, folder)

        return self._maker.make(key, Stage("verify", f"{target.name} {graph.name}"), produce)

    def chained(self, target: Target, chain: Chain) -> Chained:
        """What the packaged graphs compute as a chain, compared with the float chain, and the metric of both."""
        variant, graphs = target.variant, target.variant.model.graphs
        key = self.keys.chain(target, chain)
        truth = read_chain(self.chain_reference(variant, chain).folder, len(graphs))
        names = {graph.name: self.output_names(variant, graph) for graph in graphs}

        def produce(folder: Path) -> None:
            log, package = self._maker.log(key), self.package(target).folder

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

        entry = self._maker.make(key, Stage("chain", target.name), produce)
        compared = load_chain(entry.folder)
        if chain.metric is None:
            return Chained(compared, ())
        metric_key = self.keys.chain_metric(target, chain)

        def evaluate(folder: Path) -> None:
            room = self._code_room(variant, metric_key)
            steps = (truth, read_chain(entry.folder, len(graphs)))
            inputs.run_chain_metric(variant.model, chain, steps, room, folder)

        metric = self._maker.make(metric_key, Stage("metric", f"{target.name} chain"), evaluate)
        return Chained(compared, inputs.load_metric(metric.folder))

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
