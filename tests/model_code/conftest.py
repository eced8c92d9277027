"""A model folder with code written by the test, and calls of it."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qnn.child import Limits
from qnn.model_code import DataRequest, MetricPair, MetricRequest, MetricSample, ModelCode, run_data, run_metric
from qnn.npz import write_npz
from qnn.tensors import TensorSpec

INPUTS = (TensorSpec("x", "float32", (1, 4)), TensorSpec("n", "int32", ()))

Tensors = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Bench:
    """One model folder; `python` runs its code."""

    root: Path
    python: Path = Path(sys.executable)

    @property
    def folder(self) -> Path:
        return self.root / "model"

    @property
    def log(self) -> Path:
        return self.root / "logs" / "code.log"

    def write(self, name: str, text: str) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / name).write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")

    def data(
        self,
        text: str,
        *,
        count: int = 2,
        entry: str = "data.py:samples",
        inputs: tuple[TensorSpec, ...] = INPUTS,
        sources: dict[str, Path] | None = None,
        limits: Limits | None = None,
    ) -> tuple[Path, ...]:
        self.write("data.py", text)
        output = self.root / f"samples-{len(list(self.root.iterdir()))}"
        output.mkdir()
        return run_data(DataRequest(self._code(entry, limits), "net", inputs, sources or {}, count, output))

    def metric(self, text: str, *samples: tuple[Tensors, Tensors, Tensors]) -> tuple[MetricPair, ...]:
        self.write("metric.py", text)
        files = []
        for number, sample in enumerate(samples):
            paths = [self.root / f"{number}-{part}.npz" for part in ("in", "reference", "out")]
            for path, tensors in zip(paths, sample, strict=True):
                write_npz(path, tensors)
            files.append(MetricSample(*paths))
        return run_metric(MetricRequest(self._code("metric.py:evaluate", None), "net", tuple(files), {}))

    def _code(self, entry: str, limits: Limits | None) -> ModelCode:
        return ModelCode(self.folder, entry, self.python, self.log, limits or Limits(seconds=60, memory_bytes=4 << 30))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def floats(*values: float) -> Tensors:
    return {"y": np.array(values, np.float32)}
