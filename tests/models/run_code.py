"""Runs one model's data.py or metric.py as a process of its own: python run_code.py REQUEST OUTPUT.

REQUEST is a JSON file: {"file", "function", "graph", "inputs" (name -> shape), "sources" (name -> path), "count"} for
data, {"file", "function", "graph", "sources", "cases": [{"inputs", "outputs", "reference": .npz files}]} for a metric.
Writes OUTPUT/000.npz … or OUTPUT/values.json, one entry per case.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def main(request_file: str, output: str) -> None:
    request: dict[str, Any] = json.loads(Path(request_file).read_text())
    function = _load(Path(request["file"]), request["function"])
    sources = {name: Path(path) for name, path in request["sources"].items()}
    if "cases" in request:
        values = [
            function(graph=request["graph"], sources=sources, **{name: _read(path) for name, path in case.items()})
            for case in request["cases"]
        ]
        Path(output, "values.json").write_text(json.dumps(values))
        return
    inputs = {name: tuple(shape) for name, shape in request["inputs"].items()}
    samples = function(graph=request["graph"], inputs=inputs, sources=sources, count=request["count"])
    for number, sample in enumerate(samples):
        np.savez(Path(output, f"{number:03}.npz"), **sample)


def _load(file: Path, function: str) -> Callable[..., Any]:
    sys.path.insert(0, str(file.parent))  # data.py may import its neighbours
    spec = importlib.util.spec_from_file_location(f"model_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., Any] = getattr(module, function)
    return found


def _read(path: str) -> dict[str, Any]:
    with np.load(path) as arrays:
        return dict(arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
