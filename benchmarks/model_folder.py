"""A model folder made for a benchmark: one graph in one ONNX file (with its external data), one sample, pinned."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.process_cost import cost_of

FORGE = str(Path(sys.executable).with_name("qnn-forge"))


@dataclass(frozen=True)
class Case:
    """`model` is the ONNX file and `data` its external data; `inputs` as in model.yaml, one line each."""

    name: str
    model: Path
    inputs: tuple[str, ...]
    sample: Mapping[str, np.ndarray]
    chips: str
    data: Path | None = None
    buckets: str = ""


@dataclass(frozen=True)
class Workplace:
    """Where one model is built: `model` is its folder, `store` and `dist` are empty at first."""

    root: Path
    model: Path
    store: Path
    dist: Path

    @property
    def environment(self) -> dict[str, str]:
        """That of this process with the store in it."""
        return dict(os.environ, QNN_FORGE_STORE=str(self.store))

    def build(self, *options: str) -> list[str]:
        """The command that builds the model."""
        return [FORGE, "build", str(self.model), "--out", str(self.dist), *options]


def workplace(case: Case, root: Path) -> Workplace:
    """Write the model folder below the new folder `root` and pin it; the ONNX file is linked, not copied."""
    folder = root / "models" / case.name
    (folder / "samples").mkdir(parents=True)
    for file in (case.model, case.data):
        if file is not None:
            os.link(file, folder / file.name)
    np.savez(folder / "samples" / "000.npz", **case.sample)
    (folder / "model.yaml").write_text(_yaml(case), encoding="utf-8")
    made = Workplace(root, folder, root / "store", root / "dist")
    cost_of([FORGE, "pin", str(folder)], cwd=root, env=made.environment)
    return made


def _yaml(case: Case) -> str:
    sources = [f"  weights: {{local: {case.model.name}}}"]
    if case.data is not None:
        sources = [
            f"  weights: {{local: {case.model.name}, beside: [data]}}",
            f"  data: {{local: {case.data.name}}}",
        ]
    return "\n".join(
        [
            f"name: {case.name}",
            'version: "1.0"',
            "summary: Benchmark model.",
            "task: benchmark",
            "licence: {reason: made by a benchmark and never published}",
            "sources:",
            *sources,
            "graphs:",
            "  main:",
            "    source: weights",
            "    inputs:",
            *(f"      {line}" for line in case.inputs),
            *([f"buckets: {case.buckets}"] if case.buckets else []),
            "precisions: [fp16]",
            f"targets: {{socs: [{case.chips}]}}",
            "checks: {samples: samples}",
            "",
        ]
    )
