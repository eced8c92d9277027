"""One localizing run: what a build has is taken from the store, every compile is made in a child of its own."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.build.events import Silence
from qnn.build.maker import limits_of, numbered
from qnn.build.run import folders_of
from qnn.build.variants import VariantBuilder
from qnn.child import Host, HostPool, Limits
from qnn.chips.table import needs_fp16
from qnn.errors.base import ForgeError
from qnn.errors.child import ChildCrashed
from qnn.errors.localize import DoesNotCompile, NoSuchGraph, NoSuchSample
from qnn.localize.facts import Located, Measured, Measurement, Stretch, Survey
from qnn.localize.plan import Plan
from qnn.localize.request import CompareRequest, StretchRequest, SurveyRequest
from qnn.localize.search import MANY, Search
from qnn.model.spec import Graph, Model
from qnn.plan.targets import Target
from qnn.prepare.prepared import load_prepared
from qnn.store import Store
from qnn.toolchains.pip.toolchain import PipToolchain

SURVEY_JOB = "qnn.localize.survey:survey"
MEASURE_JOB = "qnn.localize.measure:measure"
COMPARE_JOB = "qnn.localize.measure:compare_preparation"
_PRELOAD = ("numpy", "onnx", "onnxruntime")


@dataclass(frozen=True)
class Question:
    """Which graph of which target, and how to search.

    `sample` is a number from 0, or None for the first sample whose outputs are wrong. `bisect` is None where the
    graph's size decides. `threshold` is the least cosine of a right tensor.
    """

    target: Target
    graph: str
    threshold: float
    sample: int | None
    bisect: bool | None


def without_rewrites(model: Model, names: Sequence[str]) -> Model:
    """The model with these rewrites switched off in every graph."""
    off = dict.fromkeys(names, False)
    graphs = tuple(dataclasses.replace(graph, rewrites={**graph.rewrites, **off}) for graph in model.graphs)
    return dataclasses.replace(model, graphs=graphs)


def locate(question: Question, store: Path, say: Callable[[str], None]) -> Located:
    """Find where the graph goes wrong on the emulator; `say` is told what is being done.

    Raises the ForgeErrors of fetching, preparing and data.py, and of qnn.errors.localize.
    """
    graph = _graph(question.target.variant.model, question.graph)
    with (
        Store(store) as opened,
        HostPool(1, _PRELOAD) as pool,
        tempfile.TemporaryDirectory(prefix="qnn-forge-localize-") as folder,
    ):
        builder = VariantBuilder(opened, PipToolchain(), pool, folders_of(store), Silence())
        variant = question.target.variant
        say("preparing the graph and its samples")
        prepared = builder.prepared(variant, graph)
        samples = numbered(builder.samples(variant, graph))
        references = numbered(builder.reference(variant, graph))
        if question.sample is not None and question.sample >= len(samples):
            raise NoSuchSample(
                f"{variant.name} {graph.name} has {len(samples)} samples", remedy=f"0 to {len(samples) - 1}"
            )
        files = tuple(prepared.folder / name for name in load_prepared(prepared.folder).files)
        with pool.host() as host:
            room = _Room(host, Path(folder), folders_of(store).logs / "localize.log", limits_of(variant))
            return _Locating(question, room, say).run(files, samples, references)


def _graph(model: Model, name: str) -> Graph:
    for graph in model.graphs:
        if graph.name == name:
            return graph
    names = ", ".join(graph.name for graph in model.graphs)
    raise NoSuchGraph(f"{model.name} has no graph {name!r}", remedy=f"choose among: {names}")


@dataclass(frozen=True)
class _Room:
    """Where jobs run: one host, a folder that holds the survey and an empty folder for each compile."""

    host: Host
    folder: Path
    log: Path
    limits: Limits

    def survey(self, files: tuple[Path, ...]) -> Survey:
        """Write the graph as the compiler gets it."""
        folder = self.folder / "graph"
        folder.mkdir()
        found: Survey = self.host.call(SURVEY_JOB, SurveyRequest(files, folder), log=self.log, limits=self.limits)
        return found

    def measure(self, request: StretchRequest) -> Measurement:
        """Compile, run and compare in an empty folder, gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="stretch-", dir=self.folder) as work:
            found: Measurement = self.host.call(MEASURE_JOB, request, log=self.log, limits=self.limits, cwd=Path(work))
        return found

    def compare(self, request: CompareRequest) -> tuple[Measured, ...]:
        """The prepared graph against the float model, both on the CPU."""
        found: tuple[Measured, ...] = self.host.call(COMPARE_JOB, request, log=self.log, limits=self.limits)
        return found


class _Locating:
    """One run of `locate`, once everything is there."""

    def __init__(self, question: Question, room: _Room, say: Callable[[str], None]) -> None:
        self._question = question
        self._room = room
        self._say = say
        self._compiles = 0

    def run(self, files: tuple[Path, ...], samples: Sequence[Path], references: Sequence[Path]) -> Located:
        survey = self._room.survey(files)
        sample, whole = self._first_wrong(survey, samples)
        preparation = self._room.compare(
            CompareRequest(references[sample], survey.file, samples[sample], self._question.threshold)
        )
        plan = Plan(survey, whole.ops)
        bisect = len(survey.nodes) > MANY if self._question.bisect is None else self._question.bisect

        def look(stretch: Stretch, outputs: Sequence[str] = ()) -> Measurement:
            return self._look(survey, stretch, outputs, samples[sample])

        search = Search(plan, look, self._say)
        wrong = [output.tensor for output in whole.tensors if output.wrong]
        culprits = search.run(wrong, bisect=bisect)
        return Located(
            target=self._question.target.name,
            graph=self._question.graph,
            sample=sample,
            threshold=self._question.threshold,
            nodes=len(survey.nodes),
            outputs=whole.tensors,
            preparation=preparation,
            culprits=culprits,
            steps=tuple(search.steps),
            unprobed=tuple(search.unprobed),
            probed=search.probed,
            compiles=self._compiles,
            spread_out=search.spread_out,
        )

    def _first_wrong(self, survey: Survey, samples: Sequence[Path]) -> tuple[int, Measurement]:
        """The sample asked for, else the first whose outputs are wrong (the first at all when none is)."""
        asked = self._question.sample
        numbers = range(len(samples)) if asked is None else [asked]
        tried: list[Measurement] = []
        for number in numbers:
            self._say(f"compiling the whole graph ({len(survey.nodes)} nodes) and running it on sample {number}")
            try:
                measured = self._look(survey, Stretch(0, len(survey.nodes)), survey.outputs, samples[number])
            except ChildCrashed:
                raise
            except ForgeError as error:
                raise DoesNotCompile(
                    f"{self._question.graph} on {self._question.target.soc.name}: {error.message}",
                    remedy="run `qnn-forge build`, which names what is refused",
                    log=self._room.log,
                ) from None
            if measured.wrong:
                return number, measured
            tried.append(measured)
        return numbers[0], tried[0]

    def _look(self, survey: Survey, stretch: Stretch, outputs: Sequence[str], sample: Path) -> Measurement:
        self._compiles += 1
        question = self._question
        return self._room.measure(
            StretchRequest(
                file=survey.file,
                stretch=stretch,
                outputs=tuple(outputs),
                sample=sample,
                soc=question.target.soc,
                float_graph=needs_fp16(question.target.variant.precision),
                threshold=question.threshold,
            )
        )
