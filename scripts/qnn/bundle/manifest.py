"""manifest.json: what a bundle is, where it came from, and what was measured of it.

The dataclasses here are the document: `to_json` and `from_json` turn one into the other, and manifest.schema.json
(shipped) says the same to other languages; a test holds the three together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qnn.errors.bundles import InvalidManifest
from qnn.model.spec import Gates
from qnn.tensors import TensorSpec

if TYPE_CHECKING:
    from cattrs import Converter

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class ManifestModel:
    """Which model; `licence` is an SPDX expression or None with a reason."""

    name: str
    version: str
    summary: str
    task: str
    licence: str | None
    licence_reason: str | None
    attribution: str | None


@dataclass(frozen=True)
class ManifestChip:
    """Which chip; `soc_id` is QNN's number, `vtcm_mb` in MB."""

    name: str
    soc_id: int
    arch: str
    vtcm_mb: int
    hvx_threads: int
    fp16: bool


@dataclass(frozen=True)
class ManifestToolchain:
    """What made the binaries. A device needs a runtime of at least this QAIRT version."""

    name: str
    qairt: str
    build_id: str
    packages: Mapping[str, str]


@dataclass(frozen=True)
class ManifestSource:
    """One input file: its address, and the sha256 and size (bytes) of what was used."""

    name: str
    kind: str
    address: str
    member: str | None
    sha256: str
    size: int


@dataclass(frozen=True)
class ManifestTensor:
    """One input or output as the context binary has it.

    `scale`/`offset`: value = (stored + offset) * scale, one pair a tensor or one for each index along `axis`;
    empty for tensors that are not quantized.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    scale: tuple[float, ...] = ()
    offset: tuple[int, ...] = ()
    axis: int | None = None


@dataclass(frozen=True)
class ManifestOutput:
    """What verification measured of one output over all samples, and the gates it was held to.

    A number is None where it has no meaning for the output (cosine of an integer tensor).
    """

    name: str
    elements: int
    cosine: float | None
    max_abs: float | None
    max_rel: float | None
    argmax: float | None
    equal: float | None
    gates: Gates


@dataclass(frozen=True)
class ManifestMetric:
    """One value of the model's task metric: of the float results and of the HTP results, on the worst sample.

    `samples` is how many it was computed for, `equal` on how many both values are the same; `gate` is in words.
    """

    name: str
    samples: int
    equal: int
    float_value: float | str | bool
    htp_value: float | str | bool
    gate: str


@dataclass(frozen=True)
class ManifestExport:
    """How a graph was made from a PyTorch module: by ``torch.export`` or the ``legacy`` exporter, in which ONNX opset,
    with which packages. Its results were held to the module's.
    """

    exporter: str
    opset: int
    packages: Mapping[str, str]


@dataclass(frozen=True)
class ManifestGraph:
    """One graph: its files, its I/O, what was read back, what was changed on the way, what was measured.

    `inputs` and `outputs` are the binary's own; `interface_inputs` and `interface_outputs` the ONNX wrapper's, which
    are float where the binary's are quantized. Golden files have the wrapper's dtypes. `source` names the one of the
    manifest's sources that was compiled, `reference` the one whose float results are the truth; both are None for a
    graph that was exported from PyTorch, and `export` for every other. `remarks` are what the build said of the graph
    and what stopped nothing.
    """

    name: str
    binary: str
    wrapper: str
    graph_name: str
    inputs: tuple[ManifestTensor, ...]
    outputs: tuple[ManifestTensor, ...]
    interface_inputs: tuple[TensorSpec, ...]
    interface_outputs: tuple[TensorSpec, ...]
    blob_version: str
    vtcm_mb: int | None
    hvx_threads: int | None
    optimization_level: int | None
    spill_fill_bytes: int | None
    rewrites: tuple[str, ...]
    numerics: tuple[ManifestOutput, ...]
    metrics: tuple[ManifestMetric, ...]
    export: ManifestExport | None = None
    source: str | None = None
    reference: str | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ManifestChainGraph:
    """One graph of the chain: how often it ran on float and on HTP, and its outputs there compared, with the errors of
    the graphs before it. `numerics` is empty where the numbers of runs differ.
    """

    name: str
    float_runs: int
    htp_runs: int
    numerics: tuple[ManifestOutput, ...]


@dataclass(frozen=True)
class ManifestChain:
    """The graphs run one after another, each on the HTP results of those before it, against the same on float."""

    rounds: int
    graphs: tuple[ManifestChainGraph, ...]
    metrics: tuple[ManifestMetric, ...]


@dataclass(frozen=True)
class ManifestFile:
    """One file of the bundle (manifest.json itself left out)."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """A whole manifest.json.

    `dimensions` are the bucket's symbols; `samples` how many inputs were verified (0 when `verified` is False);
    `golden` how many of them travel with the bundle; `stages` the digest of every stage output it was made from;
    `chain` is None for a model without one, and where it is not verified.
    """

    schema: int
    name: str
    forge: str
    model: ManifestModel
    bucket: str
    dimensions: Mapping[str, int]
    precision: str
    chip: ManifestChip
    toolchain: ManifestToolchain
    verified: bool
    samples: int
    golden: int
    sources: tuple[ManifestSource, ...]
    stages: Mapping[str, str]
    graphs: tuple[ManifestGraph, ...]
    files: tuple[ManifestFile, ...]
    chain: ManifestChain | None = None


def to_json(manifest: Manifest) -> str:
    """The document, keys sorted, ending in a newline: same manifest, same bytes."""
    from cattrs import unstructure  # noqa: PLC0415 - 50 ms that a command without manifests need not pay

    return json.dumps(unstructure(manifest), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str, where: Path) -> Manifest:
    """A manifest from its document; raises InvalidManifest (QF701) naming every key that is wrong."""
    from cattrs import BaseValidationError, transform_error  # noqa: PLC0415

    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidManifest(f"{where} is not JSON: {error}", remedy=_DOWNLOAD_AGAIN) from None
    version = document.get("schema") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        raise InvalidManifest(
            f"{where} has schema version {version!r}; this qnn-forge reads version {SCHEMA_VERSION}",
            remedy="use a qnn-forge of the version that made the bundle (its manifest names it under `forge`)",
        )
    try:
        return _converter().structure(document, Manifest)
    except BaseValidationError as error:
        raise InvalidManifest(
            f"{where} is not a valid manifest", remedy=_DOWNLOAD_AGAIN, details=transform_error(error)
        ) from None


def _converter() -> Converter:
    from cattrs import Converter  # noqa: PLC0415

    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(float | str | bool, lambda value, _: value)
    return converter


_DOWNLOAD_AGAIN = "build or download the bundle again"
