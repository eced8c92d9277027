"""What a run of model code is asked for, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qnn.child import Limits
from qnn.tensors import TensorSpec

Scalar = float | int | str | bool


@dataclass(frozen=True)
class ModelCode:
    """One function of a model: `entry` is "data.py:samples", its file relative to the model's `folder`.

    `python` runs it (see `environment_python`). Its stdout and stderr are appended to `log`.
    """

    folder: Path
    entry: str
    python: Path
    log: Path
    limits: Limits = field(default_factory=Limits)

    @property
    def file(self) -> Path:
        """The Python file."""
        return self.folder / self.entry.partition(":")[0]

    @property
    def function(self) -> str:
        """The function's name."""
        return self.entry.partition(":")[2]


@dataclass(frozen=True)
class DataRequest:
    """`count` samples for a graph: `inputs` are its inputs with the bucket's fixed shapes, `sources` the model's
    fetched files. `output` (existing) receives ``000.npz`` ….
    """

    code: ModelCode
    graph: str
    inputs: tuple[TensorSpec, ...]
    sources: Mapping[str, Path]
    count: int
    output: Path


@dataclass(frozen=True)
class MetricSample:
    """Three .npz files of one sample: what went in, what the float model gives, what HTP gives."""

    inputs: Path
    reference: Path
    outputs: Path


@dataclass(frozen=True)
class MetricRequest:
    """The task metric of a graph on float and on HTP results, sample by sample."""

    code: ModelCode
    graph: str
    samples: tuple[MetricSample, ...]
    sources: Mapping[str, Path]


@dataclass(frozen=True)
class MetricPair:
    """What the metric returned for one sample's float results and for its HTP results."""

    float_values: Mapping[str, Scalar]
    htp_values: Mapping[str, Scalar]
