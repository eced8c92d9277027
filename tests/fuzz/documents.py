"""model.yaml: through `lint` in all its forms and through `plan`."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.fuzz.mutate import ODD_TEXT, ODD_VALUES, bytes_of, data_of, nested, text_of
from tests.fuzz.outcome import Outcome, judged
from tests.model.sample import DATA, METRIC, MODEL

# Everything that the format has and the sample of tests/model has not.
_REST = """\
  tail:
    export: export.py:tail
    inputs:
      hidden: [1, length, 64]
  head:
    source: det
    inputs:
      x: {shape: [1, 3, height, width]}
    outputs: [/model.22/Concat_3_output_0, scores]
    rewrites: {scaled-squares: true, softmax-mask: false}
buckets:
"""
_CHECKS = """\
checks:
  ranges:
    det: {/norm/Pow_output_0: only the sign is used}
  chain:
    feed: chain.py:feed
    rounds: 2
    metric: chain.py:evaluate
    metrics: {text: equal, iou: {min: 0.98}}
"""
_LINT = """\
lint:
  skip:
    - {id: QF122, reason: the first dimension is time}
"""
WHOLE = (
    MODEL.replace("buckets:\n", _REST)
    .replace("checks:\n", _CHECKS)
    .replace("precisions: [fp16, w8a8]", "precisions: [fp16]")
    .replace("numpy==2.0.0", "torch==2.13.0, onnxscript==0.5.6")
    + _LINT
)
EXPORT = "def tail(*, bucket, sources):\n    return None\n"
CHAIN = """\
def feed(*, graph, turn, inputs, runs, sources):
    return {}


def evaluate(*, runs, reference, sources):
    return {}
"""
_WORDS = (
    *ODD_TEXT,
    ": ", "- ", "? ", "#", "|\n ", ">-\n", "'", '"', "{", "}", "[", "]", ",", "&a ", "*a", "<<: *a",
    "!!python/name:os.system ",
    "!!binary ", "!x ", "--- ", "...", "%YAML 9.9\n", "~", "yes", "0x10", "1_000", "1e999", ".nan", "-.inf", "12:30:45",
    "2020-01-01", "\\u0000", "9" * 5000, "*", "det", "fp16", "data.py:samples", "export.py:none", "height", "..", "@",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    *ODD_VALUES, "det", "rec", "fp16", "w4a16", "height", "data.py:samples", "export.py:tail", "chain.py:feed", "equal",
    {"min": 1}, {"max_drop": 1}, {"spdx": "MIT"}, {"shape": [1], "dtype": "int32"}, [1, "height"], ["SM8650"],
    {"export": "export.py:tail", "inputs": {"x": [1]}}, {"source": "det", "inputs": {"x": [1]}, "outputs": ["x", "x"]},
    {"local": "a.onnx"}, {"url": "https://[::1"}, {"url": "https://x:y@h:99999/a"}, {"pypi": "a==1"},
    {"github": "a/b@c"},
)  # fmt: skip


def content(random: Random) -> bytes:
    """A model.yaml with damage."""
    match random.randrange(8):
        case 0:
            return bytes_of(random, WHOLE.encode())
        case 1:
            opening, closing = random.choice((("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("a: [", "]")))
            return (WHOLE + nested(random, opening, closing)).encode()
        case 2 | 3:
            return text_of(random, WHOLE, _WORDS).encode(errors="surrogatepass")
        case _:
            data = data_of(random, yaml.safe_load(WHOLE), _VALUES)
            return yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=10_000).encode()


def attempt(random: Random, scratch: Path) -> list[Outcome]:
    """One damaged model.yaml through lint and plan; every problem has a place in the file."""
    folder = scratch / "models" / "reader"
    folder.mkdir(parents=True, exist_ok=True)
    files = {"data.py": DATA, "metric.py": METRIC, "export.py": EXPORT, "chain.py": CHAIN, "LICENSE": "free to use"}
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "model.yaml").write_bytes(content(random))
    form = random.choice(("text", "github", "json", "sarif"))
    found = judged(["lint", str(folder), "--format", form], scratch)
    assert found.code in (0, 3)
    planned = judged(["plan", "--models-dir", str(scratch / "models"), "--soc", "SM8650", "--json"], scratch)
    assert planned.code in (0, 3, 4)
    assert planned.code != 3 or found.code == 3  # what lint passes is a model
    return [found, planned]
