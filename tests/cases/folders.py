"""A model folder for each case: model.yaml, the ONNX file and its inputs as a shipped sample."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

HERE = Path(__file__).parent
DATA = HERE / "data"
TABLE = HERE / "cases.csv"
_16_BITS = (TensorProto.UINT16, TensorProto.INT16)

YAML = """\
name: {name}
version: "1.0"
summary: A case.
task: test
licence: {{spdx: MIT}}
sources:
  weights: {{local: model.onnx, sha256: {sha256}, size: {size}}}
graphs:
  net:
    source: {source}
    inputs:
{inputs}
precisions: [{precision}]
targets: {{socs: [public]}}
checks:
  samples: samples/
"""


@dataclass(frozen=True)
class Case:
    """One row of cases.csv.

    `outcome` is right, rewritten or refused. `how` is what must be said: for rewritten the names of the rewrites
    (separated by spaces), for refused the error's id; `words` (separated by " | ") must all be in the error's text.
    """

    name: str
    outcome: str
    how: str
    words: tuple[str, ...]

    @property
    def model(self) -> str:
        """The name of the model folder."""
        return self.name.lower().replace("_", "-")


def read_cases() -> list[Case]:
    """All cases, by name."""
    with TABLE.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return [
        Case(row["case"], row["outcome"], row["how"], tuple(word for word in row["words"].split(" | ") if word))
        for row in rows
    ]


def write_folder(name: str, models: Path) -> Path:
    """The model folder of a case; returns it."""
    source = DATA / f"{name}.onnx"
    graph = onnx.load(source)
    folder = models / name.lower().replace("_", "-")
    (folder / "samples").mkdir(parents=True)
    shutil.copyfile(source, folder / "model.onnx")
    constants = {tensor.name for tensor in graph.graph.initializer}
    names = [value.name for value in graph.graph.input if value.name not in constants]
    with np.load(source.with_suffix(".npz")) as arrays:
        feeds = {key: arrays[f"in{index}"] for index, key in enumerate(names)}
    np.savez(folder / "samples" / "000.npz", **feeds)
    precision = precision_of(graph)
    content = source.read_bytes()
    text = YAML.format(
        name=folder.name,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        source="weights" if precision == "fp16" else f"{{{precision}: weights}}",
        inputs="\n".join(_input(key, array) for key, array in feeds.items()),
        precision=precision,
    )
    (folder / "model.yaml").write_text(text, encoding="utf-8")
    return folder


def precision_of(model: ModelProto) -> str:
    """fp16, or w8a8 and w8a16 by the type of the zero points."""
    if not any(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in model.graph.node):
        return "fp16"
    wide = any(tensor.data_type in _16_BITS for tensor in model.graph.initializer)
    return "w8a16" if wide else "w8a8"


def _input(name: str, array: np.ndarray) -> str:
    shape = list(array.shape)
    declared = f"{{shape: {shape}, dtype: int64}}" if array.dtype == np.int64 else str(shape)
    return f"      {json.dumps(name, ensure_ascii=False)}: {declared}"
