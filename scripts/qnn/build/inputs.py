"""What a build gets from outside the chip's world: sources, prepared graphs, samples, float results, metric values.

Thin calls that put a stage's parameters together; the work is done in the packages named.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qnn.build.measured import MetricValue
from qnn.child import Host, Limits
from qnn.errors.base import ForgeError, Place
from qnn.errors.model_code import TooFewSamples
from qnn.model.load import MODEL_FILE
from qnn.model.spec import Graph, Model, Source
from qnn.plan.targets import Variant
from qnn.prepare.prepared import PreparedGraph
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
    from qnn.verify.reference_request import ReferenceRequest  # noqa: PLC0415

    try:
        host.call("qnn.verify.reference:reference", ReferenceRequest(source, samples, folder), log=log, limits=limits)
    except ForgeError as error:
        raise error.at(Place(str(model.folder / MODEL_FILE))) from None
