"""The stages of a variant, which are the same for every chip: fetch, export, prepare, samples, reference, range."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qnn.build import inputs
from qnn.build.chain import Run, Step, run_chain
from qnn.build.events import Listener, Stage
from qnn.build.inputs import Turn
from qnn.build.keys import Keys
from qnn.build.maker import Maker, limits_of, numbered, only_file
from qnn.build.remarks import range_remark
from qnn.child import HostPool
from qnn.chips.table import needs_fp16
from qnn.errors.base import ForgeError
from qnn.files import link_or_copy
from qnn.model.spec import Chain, Graph
from qnn.plan.targets import Variant
from qnn.prepare.prepared import load_prepared
from qnn.ranges.facts import load_ranges
from qnn.ranges.request import RangeRequest
from qnn.ranges.verdict import refusal
from qnn.store import Entry, StageKey, Store
from qnn.toolchains.protocol import Toolchain
from qnn.verify.reference import ReferenceRequest

_RANGES_JOB = "qnn.ranges.job:measure_ranges"


@dataclass(frozen=True)
class Folders:
    """Where a build keeps what is not a stage output: partial downloads, Python environments, logs."""

    downloads: Path
    environments: Path
    logs: Path


class VariantBuilder:
    """Makes what no chip has a part in. Thread-safe."""

    def __init__(
        self, store: Store, toolchain: Toolchain, pool: HostPool, folders: Folders, listener: Listener
    ) -> None:
        self._store = store
        self._pool = pool
        self._folders = folders
        self._listener = listener
        self._maker = Maker(store, listener, folders.logs)
        self._ranges: dict[tuple[str, str], ForgeError | tuple[str, ...]] = {}
        self._told: set[tuple[str, str]] = set()
        self._guard = threading.Lock()
        self.keys = Keys(toolchain, store.code_memo)

    def source(self, variant: Variant, name: str) -> Entry:
        """A fetched and verified source file."""
        source = variant.model.sources[name]

        def produce(folder: Path) -> None:
            fetched = inputs.fetch_source(variant.model, source, folder, self._folders.downloads)
            self._store.known.learn(fetched.path, fetched.sha256)

        return self._maker.make(self.keys.source(source), Stage("fetch", f"{variant.model.name} {name}"), produce)

    def exported(self, variant: Variant, graph: Graph) -> Entry:
        """The ONNX file of a graph that comes from PyTorch."""
        key = self.keys.exported(variant, graph)

        def produce(folder: Path) -> None:
            room = self._code_room(variant, key)
            with self._pool.host() as host:
                inputs.export_graph(variant, graph, room, folder, host)

        return self._maker.make(key, Stage("export", f"{variant.name} {graph.name}"), produce)

    def prepared(self, variant: Variant, graph: Graph) -> Entry:
        """A graph with fixed shapes, simplified, checked."""
        key = self.keys.prepared(variant, graph)

        def produce(folder: Path) -> None:
            name = None if graph.export else graph.source_for(variant.precision)
            with self._original(variant, graph, name) as source, self._pool.host() as host:
                inputs.prepare_graph(
                    variant, graph, source, folder, host, log=self._maker.log(key), limits=limits_of(variant)
                )

        return self._maker.make(key, Stage("prepare", f"{variant.name} {graph.name}"), produce)

    def samples(self, variant: Variant, graph: Graph) -> Entry:
        """Real inputs, 000.npz …"""
        key = self.keys.samples(variant, graph)

        def produce(folder: Path) -> None:
            facts = load_prepared(self.prepared(variant, graph).folder)
            if variant.model.checks.samples_dir is not None:
                with self._pool.host() as host:
                    inputs.shipped_samples(
                        variant.model, facts, folder, host, log=self._maker.log(key), limits=limits_of(variant)
                    )
                return
            inputs.run_data(variant.model, facts, self._code_room(variant, key), folder)

        return self._maker.make(key, Stage("samples", f"{variant.name} {graph.name}"), produce)

    def reference(self, variant: Variant, graph: Graph) -> Entry:
        """Float results of the original graph, 000.npz …"""
        key = self.keys.reference(variant, graph)

        def produce(folder: Path) -> None:
            samples = numbered(self.samples(variant, graph))
            with self._original(variant, graph, graph.reference) as source, self._pool.host() as host:
                request = ReferenceRequest(source, samples, folder, graph.outputs)
                log = self._maker.log(key)
                inputs.run_reference(variant.model, graph, request, host, log=log, limits=limits_of(variant))
                if graph.export is not None:
                    inputs.hold_to_module(variant, graph, request, self._code_room(variant, key), host)

        return self._maker.make(key, Stage("reference", f"{variant.name} {graph.name}"), produce)

    def ranges(self, variant: Variant, graph: Graph, samples: int = 1) -> Entry:
        """What leaves fp16 when the prepared graph runs in float on its first samples: ranges.json."""
        key = self.keys.ranges(variant, graph, samples)

        def produce(folder: Path) -> None:
            prepared = self.prepared(variant, graph).folder
            model = prepared / load_prepared(prepared).files[0]
            request = RangeRequest(graph.name, model, numbered(self.samples(variant, graph))[:samples], folder)
            with self._pool.host() as host:
                host.call(_RANGES_JOB, request, log=self._maker.log(key), limits=limits_of(variant))

        return self._maker.make(key, Stage("range", f"{variant.name} {graph.name}"), produce)

    def range_remarks(self, variant: Variant, graph: Graph) -> tuple[str, ...]:
        """What is to be said of a graph that leaves fp16's range without harm, the same for every chip.

        Said here, once a run. Nothing for a quantized precision. Raises LeavesFp16 (QF440) where the graph's outputs
        would come out wrong.
        """
        if not needs_fp16(variant.precision):
            return ()
        subject = (variant.name, graph.name)
        if subject not in self._ranges:
            found = self._judged(variant, graph)
            with self._guard:
                self._ranges.setdefault(subject, found)
        known = self._ranges[subject]
        if isinstance(known, ForgeError):
            raise known
        self.tell(variant, graph.name, known)
        return known

    def _judged(self, variant: Variant, graph: Graph) -> ForgeError | tuple[str, ...]:
        known = variant.model.checks.ranges.get(graph.name, {})
        facts = load_ranges(self.ranges(variant, graph).folder)
        fault = refusal(facts, known)
        if fault is None:
            remark = range_remark(facts, known)
            return () if remark is None else (remark,)
        place = inputs.place_of(variant.model, ("graphs", graph.name))
        return fault if place is None else fault.at(place)

    def tell(self, variant: Variant, graph: str, remarks: tuple[str, ...]) -> None:
        """Say a graph's remarks, unless they were said in this run."""
        subject = (variant.name, graph)
        with self._guard:
            first = subject not in self._told
            self._told.add(subject)
        if first and remarks:
            self._listener.remarks(Stage("range", " ".join(subject)), remarks)

    def chain_reference(self, variant: Variant, chain: Chain) -> Entry:
        """The graphs as a chain on float: the steps of qnn.build.chain."""
        key = self.keys.chain_reference(variant, chain)

        def produce(folder: Path) -> None:
            log = self._maker.log(key)

            def run(graph: Graph, samples: tuple[Path, ...], output: Path) -> None:
                with self._original(variant, graph, graph.reference) as source, self._pool.host() as host:
                    request = ReferenceRequest(source, samples, output, graph.outputs)
                    inputs.run_reference(variant.model, graph, request, host, log=log, limits=limits_of(variant))

            self._chain(variant, chain, self.reference(variant, variant.model.graphs[0]), run, log, folder)

        return self._maker.make(key, Stage("chain", f"{variant.name} float"), produce)

    def _chain(self, variant: Variant, chain: Chain, first: Entry, run: Run, log: Path, folder: Path) -> None:
        """Run the graphs by `run` as a chain, its steps kept in `folder`; `first` has the first graph's results."""
        graphs, room = variant.model.graphs, self._room(variant, log)

        def feed(graph: Graph, turn: int, steps: Sequence[Step], output: Path) -> tuple[Path, ...]:
            facts = load_prepared(self.prepared(variant, graph).folder)
            return inputs.run_feed(variant.model, chain, Turn(facts, turn, steps), room, output)

        step = Step(graphs[0].name, 0, numbered(self.samples(variant, graphs[0])), numbered(first))
        run_chain(graphs, chain.rounds, step, feed=feed, run=run, folder=folder)

    def output_names(self, variant: Variant, graph: Graph) -> tuple[str, ...]:
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
        return self._room(variant, self._maker.log(key))

    def _room(self, variant: Variant, log: Path) -> inputs.CodeRoom:
        sources = {name: only_file(self.source(variant, name)) for name in variant.model.sources}
        return inputs.CodeRoom(sources, self._folders.environments, log, limits_of(variant))
