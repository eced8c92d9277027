"""A model folder with an export.py written by the test, an interpreter that has a stand-in for torch, calls of both."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qnn.child import Host, HostPool, Limits
from qnn.export.facts import ExportFacts, ParityFacts
from qnn.export.run import ExportCode, export, hold_to_module
from qnn.model_code import ModelCode
from qnn.npz import write_npz
from qnn.verify.reference import ReferenceRequest, reference

FAKE_TORCH = Path(__file__).with_name("fake_torch.py")
HEAD = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.add(torch.relu(x), x)


"""
GOOD = """\
def net(*, bucket, sources):
    return {"module": Net(), "inputs": {"x": torch.zeros(1, bucket["n"])}}
"""


@dataclass
class Bench:
    """One model folder; `python` runs its code."""

    root: Path
    host: Host
    python: Path
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: {"x": (1, 4)})
    sources: Mapping[str, Path] = field(default_factory=dict)
    limits: Limits = field(default_factory=lambda: Limits(seconds=60, memory_bytes=4 << 30))

    @property
    def folder(self) -> Path:
        return self.root / "model"

    @property
    def log(self) -> Path:
        return self.root / "logs" / "export.log"

    @property
    def onnx(self) -> Path:
        return self.root / "out" / "net.onnx"

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def export(self, body: str = GOOD, *, head: str = HEAD, out: str = "out") -> ExportFacts:
        self.write("export.py", head + textwrap.dedent(body))
        folder = self.root / out
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return export(self.asked, folder, self.host)

    def hold(self, *samples: Mapping[str, NDArray[Any]]) -> ParityFacts:
        """Hold the file exported last to the module on some samples."""
        files = self._samples(samples)
        results = self.root / "results"
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir()
        found = reference(ReferenceRequest(self.onnx, tuple(files), results)).files
        return hold_to_module(self.asked, self.onnx, files, found, self.host)

    def _samples(self, samples: Sequence[Mapping[str, NDArray[Any]]]) -> list[Path]:
        files = [self.root / f"sample-{number}.npz" for number in range(len(samples))]
        for file, sample in zip(files, samples, strict=True):
            write_npz(file, sample)
        return files

    @property
    def asked(self) -> ExportCode:
        code = ModelCode(self.folder, "export.py:net", self.python, self.log, self.limits)
        return ExportCode(code, "net", self.inputs, {"n": self.inputs["x"][-1]}, self.sources)


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    with HostPool(1) as pool, pool.host() as host:
        yield host


@pytest.fixture(scope="session")
def fake_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that finds the stand-in as torch, and an empty onnxscript."""
    root = tmp_path_factory.mktemp("fake")
    packages = root / "packages"
    packages.mkdir()
    shutil.copyfile(FAKE_TORCH, packages / "torch.py")
    (packages / "onnxscript.py").touch()
    return interpreter(root, packages)


def interpreter(root: Path, packages: Path) -> Path:
    """Our own interpreter with one more folder of packages."""
    python = root / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def bench(tmp_path: Path, host: Host, fake_python: Path) -> Bench:
    return Bench(tmp_path, host, fake_python)


def row(*values: float) -> dict[str, NDArray[Any]]:
    return {"x": np.array([values], np.float32)}
