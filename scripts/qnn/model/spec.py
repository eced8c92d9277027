"""A model as the rest of the toolkit sees it: model.yaml turned into frozen dataclasses.

Nothing here reads files or knows a chip. `qnn.model.load.load_model` makes a `Model` from a folder and is the
only maker outside tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class SourceKind(StrEnum):
    """Where a file comes from."""

    PYPI = "pypi"
    HUGGINGFACE = "huggingface"
    URL = "url"
    GITHUB = "github"
    LOCAL = "local"


@dataclass(frozen=True)
class Source:
    """One named input file of a model.

    `locator` is the kind's own address: ``name==version`` (pypi), ``owner/repo@revision`` (huggingface: a full
    40-digit commit), an https URL (url), ``owner/repo@tag/asset`` (github), a path relative to the model folder
    (local). `member` is the file wanted inside it: a path in the wheel, in the Hub repository, or in an archive
    (zip, tar); None where the download itself is the file. `sha256` (64 lower-case hex digits) and `size` (bytes)
    describe the file that is used, after extraction; None only before `qnn-forge pin`. `beside` names the sources
    whose files must lie beside this one: the external data of a large ONNX file.
    """

    name: str
    kind: SourceKind
    locator: str
    member: str | None
    sha256: str | None
    size: int | None
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputSpec:
    """One graph input: its shape in integers and bucket symbols, and the dtype it shall have.

    `dtype` is None to keep the ONNX file's own, ``int32`` where an int64 input is to become int32, or ``int64`` where
    one is to stay (the NPU computes with its low 32 bits).
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str | None = None


@dataclass(frozen=True)
class Gates:
    """What an output must satisfy to pass; None means the toolkit's default (see qnn.verify.gates)."""

    cosine: float | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    argmax: float | None = None


@dataclass(frozen=True)
class MetricGate:
    """A gate on one value that metric.py returns. Exactly one field is set.

    `equal`: the value on HTP equals the value on float. `minimum`/`maximum`: bound on the HTP value.
    `max_drop`: float value minus HTP value is at most this.
    """

    equal: bool = False
    minimum: float | None = None
    maximum: float | None = None
    max_drop: float | None = None


@dataclass(frozen=True)
class Chain:
    """How the graphs of a model are run one after another, each on what the ones before it gave.

    `feed` (``chain.py:feed``) makes a graph's inputs from all runs before it; the first graph of the first round gets
    the model's samples. All graphs are run `rounds` times over. `metric` measures what comes out in the end; without
    one the gates of the last graph judge.
    """

    feed: str
    rounds: int = 1
    metric: str | None = None
    metric_gates: Mapping[str, MetricGate] = field(default_factory=dict)  # value -> gate


@dataclass(frozen=True)
class Checks:
    """How a model is checked: inputs (code or shipped samples), tolerances, task metric."""

    data: str | None = None  # "data.py:samples"
    samples_dir: str | None = None  # folder of NAME.npz files, relative to the model folder
    samples: int = 1  # number of samples verified
    metric: str | None = None  # "metric.py:evaluate"
    metric_gates: Mapping[str, Mapping[str, MetricGate]] = field(default_factory=dict)  # graph -> value -> gate
    gates: Gates = Gates()
    output_gates: Mapping[str, Mapping[str, Gates]] = field(default_factory=dict)  # graph -> output -> gates
    chain: Chain | None = None
    ranges: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # graph -> tensor beyond fp16 -> why it may


@dataclass(frozen=True)
class Graph:
    """One network of a model. Its ONNX file is fetched or exported from PyTorch: either `sources` or `export` is set.

    `sources` maps a precision to the name of the source that holds its ONNX file; the key ``*`` serves every
    precision without an entry of its own. `reference` names the source whose float results are the truth.
    `export` is the function that gives the PyTorch module (``export.py:encoder``); then `sources` is empty and
    `reference` None: the exported file is the truth. `outputs` are the tensors at which the graph is cut, in order;
    empty for the file's own outputs. `rewrites` switches rewrites (qnn.prepare.rewrites) on and off by name.
    """

    name: str
    sources: Mapping[str, str]
    inputs: tuple[InputSpec, ...]
    reference: str | None
    export: str | None = None
    outputs: tuple[str, ...] = ()
    rewrites: Mapping[str, bool] = field(default_factory=dict)

    def source_for(self, precision: str) -> str:
        """The source name for a precision; raises KeyError when there is none, as for an exported graph."""
        return self.sources[precision] if precision in self.sources else self.sources["*"]


@dataclass(frozen=True)
class Exclusion:
    """Chips left out of a model's targets, and why."""

    socs: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Targets:
    """Which chips a model is for: globs over names and aliases, or the words of qnn.chips.select."""

    socs: tuple[str, ...]
    exclude: tuple[Exclusion, ...] = ()


@dataclass(frozen=True)
class Licence:
    """Licence of the weights. `spdx` is an SPDX expression, or None with a `reason`."""

    spdx: str | None
    reason: str | None = None
    text: str | None = None  # name of the source that holds the licence text
    attribution: str | None = None


@dataclass(frozen=True)
class Limits:
    """What one child process may use while working on this model."""

    memory_gb: float = 16.0
    minutes: float = 20.0


@dataclass(frozen=True)
class Publish:
    """Where bundles may go. Empty means: nowhere."""

    github: bool = False
    huggingface: str | None = None


@dataclass(frozen=True)
class Model:
    """A whole model.yaml. `folder` is where it was read; relative paths in it start there."""

    name: str
    version: str
    summary: str
    task: str
    licence: Licence
    sources: Mapping[str, Source]
    graphs: tuple[Graph, ...]
    buckets: Mapping[str, Mapping[str, int]]
    precisions: tuple[str, ...]
    targets: Targets
    checks: Checks
    requires: tuple[str, ...]
    limits: Limits
    publish: Publish
    folder: Path
