"""What a build gets from outside the chip's world: sources, prepared graphs, samples, float results, metric values.

Thin calls that put a stage's parameters together; the work is done in the packages named.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from qnn.child import Host, Limits
from qnn.errors.base import ForgeError, Place
from qnn.model.load import MODEL_FILE
from qnn.model.spec import Graph, Model, Source
from qnn.plan.targets import Variant
from qnn.prepare.request import PrepareRequest
from qnn.sources.fetch import fetch

_METRIC_FILE = "metric.json"


@dataclass(frozen=True)
class MetricFiles:
    """The .npz files a metric is computed from, in the order of samples."""

    samples: tuple[Path, ...]
    references: tuple[Path, ...]
    outputs: tuple[Path, ...]


def fetch_source(model: Model, source: Source, folder: Path, downloads: Path) -> None:
    """Fetch one source into `folder`; an error names the model.yaml it comes from."""
    try:
        fetch(source, folder, downloads, model_folder=model.folder)
    except ForgeError as error:
        raise error.at(Place(str(model.folder / MODEL_FILE))) from None


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
    )
    try:
        host.call("qnn.prepare.pipeline:prepare", request, log=log, limits=limits)
    except ForgeError as error:
        raise error.at(Place(str(variant.model.folder / MODEL_FILE))) from None


def run_reference(
    model: Model, source: Path, samples: tuple[Path, ...], folder: Path, host: Host, *, log: Path, limits: Limits
) -> None:
    """Run the original float model over the samples in a child."""
    from qnn.verify.reference import ReferenceRequest  # noqa: PLC0415

    try:
        host.call("qnn.verify.reference:reference", ReferenceRequest(source, samples, folder), log=log, limits=limits)
    except ForgeError as error:
        raise error.at(Place(str(model.folder / MODEL_FILE))) from None


def shipped_samples(model: Model, folder: Path) -> None:
    """Copy the model's shipped samples, as many as are verified, as ``000.npz`` …"""
    assert model.checks.samples_dir is not None
    shipped = sorted((model.folder / model.checks.samples_dir).glob("*.npz"))
    if len(shipped) < model.checks.samples:
        raise TooFewSamples(
            f"{model.checks.samples_dir} holds {len(shipped)} samples, checks.count asks for {model.checks.samples}",
            remedy="add samples, or lower checks.count",
            place=Place(str(model.folder / MODEL_FILE)),
        )
    for number, path in enumerate(shipped[: model.checks.samples]):
        shutil.copyfile(path, folder / f"{number:03d}.npz")
