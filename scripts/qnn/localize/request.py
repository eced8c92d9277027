"""What the jobs of localizing are asked to do. Light: the parent process imports this. All are picklable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qnn.chips.soc import Soc
from qnn.localize.facts import Stretch


@dataclass(frozen=True)
class SurveyRequest:
    """The prepared graph, its first file being the ONNX file; `folder` (existing) receives what later jobs read."""

    files: tuple[Path, ...]
    folder: Path


@dataclass(frozen=True)
class CompareRequest:
    """Run `model` on the CPU on `sample` and compare its outputs with those of the file `truth`."""

    truth: Path
    model: Path
    sample: Path
    threshold: float


@dataclass(frozen=True)
class StretchRequest:
    """Compile a stretch of `file` with `outputs` (none: what later nodes use) and run it on `sample`'s true values."""

    file: Path
    stretch: Stretch
    outputs: tuple[str, ...]
    sample: Path
    soc: Soc
    float_graph: bool
    threshold: float
