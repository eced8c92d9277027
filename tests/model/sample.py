"""A valid model that uses every part of the format, and ways to write it with a fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

NAME = "reader"

MODEL = """\
name: reader
version: "4.0"
summary: Finds and reads lines of text.
task: text-recognition
licence:
  spdx: Apache-2.0
  text: licence
  attribution: The authors
sources:
  det:
    pypi: some-package==1.4.4
    file: some/det.onnx
    sha256: "1111111111111111111111111111111111111111111111111111111111111111"
    size: 4745517
  det-w8a8:
    huggingface: owner/repo@0123456789abcdef0123456789abcdef01234567
    file: det_int8.onnx
    sha256: "2222222222222222222222222222222222222222222222222222222222222222"
    size: 1200000
  rec:
    url: https://example.org/rec.zip
    file: rec.onnx
    sha256: "3333333333333333333333333333333333333333333333333333333333333333"
    size: 10
  words:
    github: owner/repo@v1.0/words.txt
    sha256: "4444444444444444444444444444444444444444444444444444444444444444"
    size: 20
  licence:
    local: LICENSE
    sha256: "5555555555555555555555555555555555555555555555555555555555555555"
    size: 11
graphs:
  det:
    source: {fp16: det, w8a8: det-w8a8}
    reference: det
    inputs:
      x: [1, 3, height, width]
  rec:
    source: {"*": rec, w8a8: words}
    inputs:
      ids: {shape: [1, length], dtype: int32}
buckets:
  small: {height: 320, width: 320, length: 128}
  large: {height: 640, width: 640, length: 128}
precisions: [fp16, w8a8]
targets:
  socs: ["SM8*", QCS8550]
  exclude:
    - {socs: [SM8350], reason: no fp16}
checks:
  data: data.py:samples
  count: 2
  gates: {cosine: 0.999, max_abs: 1, max_rel: 0.5, argmax: 0.9}
  outputs:
    det:
      out: {max_abs: 0.2}
  metric: metric.py:evaluate
  metrics:
    rec:
      text: equal
      iou: {min: 0.98}
      distance: {max: 3}
      score: {max_drop: 0.01}
requires: [pillow==12.0.0, numpy==2.0.0]
limits: {memory_gb: 8, minutes: 30.5}
publish: {github: true, huggingface: owner/repo}
"""

DATA = """\
def samples(*, graph, inputs, sources, count):
    yield from ()
"""

METRIC = """\
def evaluate(*, graph, inputs, outputs, reference, sources):
    return {}
"""

FILES: Mapping[str, str] = {"model.yaml": MODEL, "data.py": DATA, "metric.py": METRIC, "LICENSE": "free to use"}


def edited(text: str, old: str, new: str) -> str:
    """The text with the one place that reads `old` changed."""
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the text"
    return text.replace(old, new)


def write_model(parent: Path, files: Mapping[str, str] = FILES, name: str = NAME) -> Path:
    """Write a model's folder; returns it."""
    folder = parent / name
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    return folder


def line_of(text: str, words: str) -> int:
    """The 1-based number of the one line that holds these words."""
    found = [number for number, line in enumerate(text.splitlines(), start=1) if words in line]
    assert len(found) == 1, f"{words!r} stands on lines {found}"
    return found[0]
