"""What a build gets from outside the chip's world: sources, prepared graphs, samples, float results, metric values.

Thin calls that put a stage's parameters together; the work is done in the packages named.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from qnn import model_code
from qnn.build.chain import Step
from qnn.build.measured import MetricValue
from qnn.build.shipped import ShippedSamples
from qnn.child import Host, Limits
from qnn.errors.base import ForgeError, Place
from qnn.errors.model_code import EnvironmentFailed, TooFewSamples
from qnn.export.facts import save_parity
from qnn.export.run import ExportCode, export
from qnn.export.run import hold_to_module as module_parity
from qnn.model.document import read
from qnn.model.load import MODEL_FILE
from qnn.model.spec import Chain, Graph, Model, Source
from qnn.model_code import DataRequest, MetricPair, MetricRequest, MetricSample, ModelCode, environment_python
from qnn.model_code.chain import ChainMetricRequest, FeedRequest, Ran
from qnn.plan.targets import Variant
from qnn.prepare.prepared import PreparedGraph
from qnn.prepare.request import PrepareRequest
from qnn.sources.fetch import fetch
from qnn.sources.protocol import FetchedFile
from qnn.verify.reference import ReferenceRequest

_METRIC_FILE = "metric.json"


@dataclass(frozen=True)
class Turn:
    """A graph's turn in a chain: the graph as prepared, the round (from 0), and the steps before it."""

    facts: PreparedGraph
    round: int
    steps: Sequence[Step]


@dataclass(frozen=True)
class CodeRoom:
    """Where a model's own code runs: its fetched sources, the folder of environments, the log, the limits."""

    sources: Mapping[str, Path]
    environments: Path
    log: Path
    limits: Limits


def place_of(model: Model, path: tuple[str, ...]) -> Place:
    """Where a key stands in the model.yaml, which is read again: only errors need it."""
    file = model.folder / MODEL_FILE
    try:
        document = read(file.read_bytes(), os.path.relpath(file)).document
    except OSError:
        document = None
    return Place(str(file)) if document is None else document.at_key(path)


def fetch_source(model: Model, source: Source, folder: Path, downloads: Path) -> FetchedFile:
    """Fetch one source into `folder`; an error names the model.yaml it comes from."""
    try:
        return fetch(source, folder, downloads, model_folder=model.folder)
    except ForgeError as error:
        raise error.at(place_of(model, ("sources", source.name))) from None


def export_graph(variant: Variant, graph: Graph, room: CodeRoom, folder: Path, host: Host) -> None:
    """Export one graph from PyTorch for the variant's bucket."""
    try:
        export(_export_code(variant, graph, room), folder, host)
    except ForgeError as error:
        raise error.at(place_of(variant.model, ("graphs", graph.name, "export"))) from None


def hold_to_module(variant: Variant, graph: Graph, results: ReferenceRequest, room: CodeRoom, host: Host) -> None:
    """Compare the exported file's results with the module's, and keep how near they are beside them."""
    exported = sorted(results.output.glob("*.npz"))
    asked = _export_code(variant, graph, room)
    save_parity(module_parity(asked, results.model, results.samples, exported, host), results.output)


def _export_code(variant: Variant, graph: Graph, room: CodeRoom) -> ExportCode:
    model = variant.model
    assert graph.export is not None
    bucket = model.buckets[variant.bucket]
    return ExportCode(
        code=_model_code(model, graph.export, room),
        graph=graph.name,
        inputs={
            spec.name: tuple(dim if isinstance(dim, int) else bucket[dim] for dim in spec.shape)
            for spec in graph.inputs
        },
        bucket=bucket,
        sources=room.sources,
    )


def prepare_graph(
    variant: Variant, graph: Graph, source: Path, folder: Path, host: Host, *, log: Path, limits: Limits
) -> None:
    """Prepare one graph for the variant's bucket in a child."""
    request = PrepareRequest(
        source=source,
        graph=graph.name,
        inputs=graph.inputs,
        bucket=variant.model.buckets[variant.bucket],
        folder=folder,
        outputs=graph.outputs,
        rewrites=graph.rewrites,
    )
    try:
        host.call("qnn.prepare.pipeline:prepare", request, log=log, limits=limits)
    except ForgeError as error:
        raise error.at(place_of(variant.model, ("graphs", graph.name))) from None


def run_reference(
    model: Model, graph: Graph, request: ReferenceRequest, host: Host, *, log: Path, limits: Limits
) -> None:
    """Run the original float model over the samples in a child."""
    try:
        host.call("qnn.verify.reference:reference", request, log=log, limits=limits)
    except ForgeError as error:
        raise error.at(place_of(model, ("graphs", graph.name))) from None


def shipped_samples(model: Model, facts: PreparedGraph, folder: Path, host: Host, *, log: Path, limits: Limits) -> None:
    """Take over as many of the model's shipped samples as are verified, as ``000.npz`` …"""
    assert model.checks.samples_dir is not None
    shipped = sorted((model.folder / model.checks.samples_dir).glob("*.npz"))
    if len(shipped) < model.checks.samples:
        raise TooFewSamples(
            f"{model.checks.samples_dir} holds {len(shipped)} samples, checks.count asks for {model.checks.samples}",
            remedy="add samples, or lower checks.count",
            place=place_of(model, ("checks",)),
        )
    request = ShippedSamples(tuple(path.absolute() for path in shipped[: model.checks.samples]), facts.inputs, folder)
    host.call("qnn.build.shipped:take_shipped", request, log=log, limits=limits)


def run_data(model: Model, facts: PreparedGraph, room: CodeRoom, folder: Path) -> None:
    """Run the model's data function for one graph; ``000.npz`` … in `folder`."""
    assert model.checks.data is not None
    model_code.run_data(
        DataRequest(
            code=_model_code(model, model.checks.data, room),
            graph=facts.graph,
            inputs=facts.inputs,
            sources=room.sources,
            count=model.checks.samples,
            output=folder,
        )
    )


def run_metric(model: Model, graph: str, samples: Sequence[MetricSample], room: CodeRoom, folder: Path) -> None:
    """Run the model's metric on the float and the HTP results of every sample; metric.json in `folder`."""
    assert model.checks.metric is not None
    code = _model_code(model, model.checks.metric, room)
    pairs = model_code.run_metric(MetricRequest(code=code, graph=graph, samples=tuple(samples), sources=room.sources))
    _save_metric(pairs, folder)


def run_feed(model: Model, chain: Chain, turn: Turn, room: CodeRoom, output: Path) -> tuple[Path, ...]:
    """Run the model's feed function for one graph of a chain; ``000.npz`` … in `output`."""
    request = FeedRequest(
        code=_model_code(model, chain.feed, room),
        graph=turn.facts.graph,
        round=turn.round,
        inputs=turn.facts.inputs,
        runs=_ran(turn.steps),
        sources=room.sources,
        output=output,
    )
    return model_code.run_feed(request)


def run_chain_metric(
    model: Model, chain: Chain, steps: tuple[Sequence[Step], Sequence[Step]], room: CodeRoom, folder: Path
) -> None:
    """Run the chain's metric on the steps of the float chain and of HTP's; metric.json in `folder`."""
    assert chain.metric is not None
    truth, htp = (_ran(side) for side in steps)
    request = ChainMetricRequest(_model_code(model, chain.metric, room), truth, htp, room.sources)
    _save_metric((model_code.run_chain_metric(request),), folder)


def _ran(steps: Sequence[Step]) -> tuple[Ran, ...]:
    return tuple(Ran(step.graph, *files) for step in steps for files in zip(step.inputs, step.outputs, strict=True))


def _save_metric(pairs: Sequence[MetricPair], folder: Path) -> None:
    values = [
        asdict(MetricValue(name, number, value, pair.htp_values[name]))
        for number, pair in enumerate(pairs)
        for name, value in pair.float_values.items()
        if name in pair.htp_values
    ]
    (folder / _METRIC_FILE).write_text(json.dumps(values, indent=1, sort_keys=True), encoding="utf-8")


def load_metric(folder: Path) -> tuple[MetricValue, ...]:
    """Read metric.json."""
    return tuple(MetricValue(**value) for value in json.loads((folder / _METRIC_FILE).read_text(encoding="utf-8")))


def _model_code(model: Model, entry: str, room: CodeRoom) -> ModelCode:
    try:
        python = environment_python(model.requires, room.environments, log=room.log)
    except EnvironmentFailed as error:
        raise error.at(place_of(model, ("requires",))) from None
    return ModelCode(folder=model.folder, entry=entry, python=python, log=room.log, limits=room.limits)
