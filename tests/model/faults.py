"""Models with one fault each. What lint says of them stands in golden/faults.txt.

After a change that is meant: `python -m tests.model.faults`, then read the diff.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qnn.model.load import lint_model
from tests.model.sample import DATA, FILES, METRIC, MODEL, edited, write_model

GOLDEN = Path(__file__).with_name("golden") / "faults.txt"


@dataclass(frozen=True)
class Fault:
    """The sample with `old` replaced by `new` in its model.yaml, and other files changed or added."""

    name: str
    old: str = ""
    new: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


_METRICS = """\
  metrics:
    rec:
      text: equal
      iou: {min: 0.98}
      distance: {max: 3}
      score: {max_drop: 0.01}
"""
_BUCKETS = """\
buckets:
  small: {height: 320, width: 320, length: 128}
  large: {height: 640, width: 640, length: 128}
"""


def exported(
    *,
    key: str = "export: export.py:det",
    requires: str = ", torch==2.13.0, onnxscript==0.7.1",
    precisions: str = "[fp16]",
    code: str = "def det(*, bucket, sources): ...\n",
) -> dict[str, str]:
    """The sample with its first graph exported from PyTorch."""
    text = edited(MODEL, "source: {fp16: det, w8a8: det-w8a8}\n    reference: det", key)
    text = edited(text, "[pillow==12.0.0, numpy==2.0.0]", f"[pillow==12.0.0, numpy==2.0.0{requires}]")
    text = edited(text, "precisions: [fp16, w8a8]", f"precisions: {precisions}")
    return {"model.yaml": text, "export.py": f"PARTS = 'det', 'det-w8a8'\n\n\n{code}"}


CHAIN = """\
def feed(*, graph, turn, inputs, runs, sources): ...


def evaluate(*, runs, reference, sources): ...
"""


def chain(feed: str = "feed: chain.py:feed", metrics: str = "metrics: {text: equal}") -> str:
    """The number of samples, and a chain."""
    return f"  count: 2\n  chain: {{{feed}, metric: chain.py:evaluate{', ' if metrics else ''}{metrics}}}\n"


def alone(checks: str) -> dict[str, str]:
    """The sample with its first graph only, and one more key under checks."""
    text = edited(MODEL, MODEL[MODEL.index('  rec:\n    source: {"*"') : MODEL.index("buckets:")], "")
    text = edited(text, MODEL[MODEL.index("  metric: metric.py") : MODEL.index("requires:")], f"  {checks}\n")
    return {"model.yaml": text.replace(", length: 128", ""), "chain.py": CHAIN}


FAULTS = (
    Fault("unknown key near a right one", "task: text", "tsk: text"),
    Fault("unknown key that belongs elsewhere", "requires:", "minutes: 3\nrequires:"),
    Fault("unknown key like none", "requires:", "zzz: 3\nrequires:"),
    Fault("unknown key in a source", "    local: LICENSE", "    local: LICENSE\n    sha1: abc"),
    Fault("missing key", "summary: Finds and reads lines of text.\n", ""),
    Fault("missing key with a long example", "  det:\n    source: {fp16: det, w8a8: det-w8a8}\n", "  det:\n"),
    Fault("file needed for pypi", "    file: some/det.onnx\n", ""),
    Fault("metrics without metric", "  metric: metric.py:evaluate\n", ""),
    Fault("number for text", 'version: "4.0"', "version: 6.20"),
    Fault("text for list", 'socs: ["SM8*", QCS8550]', "socs: public"),
    Fault("nothing", "summary: Finds and reads lines of text.", "summary:"),
    Fault("null written", "summary: Finds and reads lines of text.", "summary: ~"),
    Fault("quoted number", "count: 2", 'count: "2"'),
    Fault("true for text", "  attribution: The authors", "  attribution: true"),
    Fault("word for boolean", "github: true", 'github: "yes"'),
    Fault("list for mapping", "limits: {memory_gb: 8, minutes: 30.5}", "limits: [8]"),
    Fault("mapping for text", "  local: LICENSE", "  local: {a: b}"),
    Fault("fraction", "count: 2", "count: 2.5"),
    Fault("pattern", "task: text-recognition", "task: Text Recognition"),
    Fault("hash", 'sha256: "1111111111111111111111111111111111111111111111111111111111111111"', "sha256: ABC"),
    Fault("enum", "precisions: [fp16, w8a8]", "precisions: [fp16, w8a8, fp32]"),
    Fault("enum near", "dtype: int32", "dtype: int23"),
    Fault("minimum", "height: 320, width: 320", "height: 0, width: 320"),
    Fault("exclusive", "memory_gb: 8", "memory_gb: 0"),
    Fault("maximum", "cosine: 0.999", "cosine: 1.5"),
    Fault(
        "too long",
        "summary: Finds and reads lines of text.",
        f"summary: {'x' * 121}",
    ),
    Fault("empty list", "precisions: [fp16, w8a8]", "precisions: []"),
    Fault("empty mapping", "max_rel: 0.5, argmax: 0.9}", "max_rel: 0.5, argmax: 0.9}\n  metricx: {}"),
    Fault("empty gates", "out: {max_abs: 0.2}", "out: {}"),
    Fault("two bounds", "iou: {min: 0.98}", "iou: {min: 0.98, max: 1}"),
    Fault("too many dims", "x: [1, 3, height, width]", "x: [1, 1, 1, 1, 1, 1, 3, height, width]"),
    Fault("twice", "precisions: [fp16, w8a8]", "precisions: [fp16, w8a8, fp16]"),
    Fault("licence both", "  spdx: Apache-2.0", "  spdx: Apache-2.0\n  reason: none"),
    Fault("no source kind", "    local: LICENSE\n", ""),
    Fault("misspelt source kind", "    local: LICENSE", "    locale: LICENSE"),
    Fault("data and samples", "  data: data.py:samples", "  samples: samples\n  data: data.py:samples"),
    Fault("bad source name", "  words:", "  Words!:"),
    Fault("bad bucket name long", "  small: {", f"  {'s' * 65}: {{"),
    Fault("name", "name: reader", "name: writer"),
    Fault("spdx unknown", "spdx: Apache-2.0", "spdx: Apache 2.0"),
    Fault("spdx unlike", "spdx: Apache-2.0", "spdx: Beerware-ish"),
    Fault("spdx spelling", "spdx: Apache-2.0", "spdx: apache-2.0"),
    Fault("source unknown", "  text: licence", "  text: license"),
    Fault("source unknown 2", 'source: {"*": rec, w8a8: words}', 'source: {"*": zzz, w8a8: words}'),
    Fault(
        "unused",
        "  licence:\n    local",
        f'  spare:\n    local: LICENSE\n    sha256: "{"6" * 64}"\n    size: 3\n  licence:\n    local',
    ),
    Fault("unpinned", "    size: 11\n", ""),
    Fault(
        "unpinned both",
        '    sha256: "5555555555555555555555555555555555555555555555555555555555555555"\n    size: 11\n',
        "",
    ),
    Fault("escapes dots", "local: LICENSE", "local: ../LICENSE"),
    Fault("escapes abs", "file: rec.onnx", "file: /etc/passwd"),
    Fault("backslash", "file: rec.onnx", "file: a\\rec.onnx"),
    Fault("empty step", "data: data.py:samples", "data: ./data.py:samples"),
    Fault("not there", "local: LICENSE", "local: LICENCE"),
    Fault("data not there", "data: data.py:samples", "data: date.py:samples"),
    Fault("samples not there", "data: data.py:samples", "samples: samples"),
    Fault("pypi range", "some-package==1.4.4", "some-package>=1.4.4"),
    Fault("hub branch", "owner/repo@0123456789abcdef0123456789abcdef01234567", "owner/repo@main"),
    Fault("hub short", "owner/repo@0123456789abcdef0123456789abcdef01234567", "owner/repo@0123456"),
    Fault("hub none", "owner/repo@0123456789abcdef0123456789abcdef01234567", "owner/repo"),
    Fault("http", "url: https://example.org/rec.zip", "url: http://example.org/rec.zip"),
    Fault("user", "url: https://example.org/rec.zip", "url: https://me:pw@example.org/rec.zip"),
    Fault("space", "url: https://example.org/rec.zip", "url: https://example.org/rec zip"),
    Fault("latest", "owner/repo@v1.0/words.txt", "owner/repo@latest/words.txt"),
    Fault("no tag", "owner/repo@v1.0/words.txt", "owner/repo/words.txt"),
    Fault("requirement", "pillow==12.0.0, numpy==2.0.0", "pillow>=12.0.0, numpy==2.0.0"),
    Fault("required twice", "pillow==12.0.0, numpy==2.0.0", "pillow==12.0.0, Pillow==12.0.1"),
    Fault("local with file", "local: LICENSE", "local: LICENSE\n    file: x"),
    Fault("publish without licence", "  spdx: Apache-2.0", "  reason: nobody knows"),
    Fault("publish own", "  spdx: Apache-2.0\n  text: licence", "  spdx: LicenseRef-own"),
    Fault("publish no text", "  text: licence\n", ""),
    Fault("licence of no commerce", "  spdx: Apache-2.0", "  spdx: CC-BY-NC-4.0"),
    Fault("licence of the networks", "  spdx: Apache-2.0", "  spdx: MIT AND AGPL-3.0-only"),
    Fault("unbound", "large: {height: 640, width: 640, length: 128}", "large: {height: 640, wide: 640, length: 128}"),
    Fault(
        "no buckets",
        _BUCKETS,
        "",
    ),
    Fault(
        "unused symbol",
        "large: {height: 640, width: 640, length: 128}",
        "large: {height: 640, width: 640, length: 128, depth: 3}",
    ),
    Fault("batch", "ids: {shape: [1, length], dtype: int32}", "ids: {shape: [2, length], dtype: int32}"),
    Fault(
        "batch symbol",
        f"[1, length], dtype: int32}}\n{_BUCKETS}",
        f"[batch, length], dtype: int32}}\n{_BUCKETS.replace('128}', '128, batch: 4}')}",
    ),
    Fault(
        "same buckets", "large: {height: 640, width: 640, length: 128}", "large: {width: 320, height: 320, length: 128}"
    ),
    Fault("precision none", '{"*": rec, w8a8: words}', "{w8a8: words}"),
    Fault("quantized none", '{"*": rec, w8a8: words}', "rec"),
    Fault("quantized shared", '{"*": rec, w8a8: words}', '{"*": rec, w8a8: rec}'),
    Fault("not offered", '{"*": rec, w8a8: words}', '{"*": rec, w8a8: words, w8a16: det}'),
    Fault("no reference", '{"*": rec, w8a8: words}', "{w8a8: words, w4a16: rec}"),
    Fault("quantized reference", '{"*": rec, w8a8: words}', "{w8a8: words}"),
    Fault("chip", '["SM8*", QCS8550]', '["SM9*", SM8655, QCS8550]'),
    Fault("chip excl", "{socs: [SM8350], reason", "{socs: [SM8351], reason"),
    Fault("comma", '["SM8*", QCS8550]', '["SM8*,!SM8350", QCS8550]'),
    Fault("excl nothing", "{socs: [SM8350], reason", "{socs: [QCS6490], reason"),
    Fault("nothing left", "{socs: [SM8350], reason", '{socs: ["SM8*", QCS8550], reason'),
    Fault(
        "no fp16",
        'precisions: [fp16, w8a8]\ntargets:\n  socs: ["SM8*", QCS8550]',
        'precisions: [fp16]\ntargets:\n  socs: ["SM8*", SM8635, SM8350]',
    ),
    Fault("function", "data.py:samples", "data.py:sample"),
    Fault("graph", "  outputs:\n    det:", "  outputs:\n    dets:"),
    Fault(
        "no gates",
        _METRICS,
        "",
    ),
    Fault("skip unknown", "limits:", "lint: {skip: [{id: QF999, reason: r}]}\nlimits:"),
    Fault("skip error", "limits:", "lint: {skip: [{id: QF104, reason: r}]}\nlimits:"),
    Fault("skip needless", "limits:", "lint: {skip: [{id: QF105, reason: r}]}\nlimits:"),
    Fault("unused, but named in data.py", "  text: licence\n", "", {"data.py": DATA + "LICENCE = 'licence'\n"}),
    Fault("not Python", files={"data.py": "def samples(:\n    pass\n"}),
    Fault("another Python file", files={"helper.py": "\n\nif x\n"}),
    Fault("lacks a parameter", files={"data.py": DATA.replace(", count", "")}),
    Fault("needs a parameter", files={"metric.py": METRIC.replace("sources)", "sources, seed)")}),
    Fault("by position only", files={"data.py": "\ndef samples(graph, /, inputs, sources, count): ...\n"}),
    Fault("takes anything", files={"data.py": "def samples(**anything): ...\n"}),
    Fault("imported", files={"data.py": "from other import x as samples\n"}),
    Fault("too few samples", "data: data.py:samples", "samples: given", {"given/a.npz": "", "given/b.txt": ""}),
    Fault("enough samples", "data: data.py:samples", "samples: given", {"given/a.npz": "", "given/b.npz": ""}),
    Fault(
        "unknown rewrite",
        "    reference: det\n",
        "    reference: det\n    rewrites: {rms-nrm: true, lone-erf: false}\n",
    ),
    Fault("gate on an output that is cut away", "    reference: det\n", "    reference: det\n    outputs: [boxes]\n"),
    Fault("range of an unknown graph", "  count: 2\n", "  count: 2\n  ranges: {dte: {x: no matter}}\n"),
    Fault("a chain", "  count: 2\n", chain(), {"chain.py": CHAIN}),
    Fault("a chain without its function", "  count: 2\n", chain("feed: chain.py:fed"), {"chain.py": CHAIN}),
    Fault(
        "a chain of other parameters",
        "  count: 2\n",
        chain(),
        {"chain.py": CHAIN.replace("turn, ", "").replace("runs, reference", "outputs, reference")},
    ),
    Fault("a chain with a metric that is not gated", "  count: 2\n", chain(metrics=""), {"chain.py": CHAIN}),
    Fault("a chain of one graph", files=alone("chain: {feed: chain.py:feed}")),
    Fault("a chain of one graph, often", files=alone("chain: {feed: chain.py:feed, rounds: 3}")),
    Fault("an export", files=exported()),
    Fault("an exported graph that is cut", files=exported(key="export: export.py:det\n    outputs: [boxes]")),
    Fault("an export and a source", files=exported(key="export: export.py:det\n    source: det")),
    Fault("an export with a reference", files=exported(key="export: export.py:det\n    reference: det")),
    Fault("an export without torch", files=exported(requires="")),
    Fault("an export without onnxscript", files=exported(requires=", Torch==2.13.0")),
    Fault("an export in a quantized precision", files=exported(precisions="[w8a8, fp16]")),
    Fault("an export that is not there", files=exported(code="def rec(): ...\n")),
    Fault("an export of another file", files=exported(key="export: other.py:det")),
    Fault("an export with other parameters", files=exported(code="def det(bucket, inputs): ...\n")),
    Fault("a hint skipped", "limits:", "lint: {skip: [{id: QF123, reason: r}]}\nlimits:"),
)


def report(parent: Path) -> str:
    """What lint says of every fault, written below `parent`."""
    with contextlib.chdir(parent):
        return "".join(f"--- {fault.name}\n{_lines(fault)}" for fault in FAULTS)


def _lines(fault: Fault) -> str:
    text = edited(MODEL, fault.old, fault.new) if fault.old else MODEL
    with tempfile.TemporaryDirectory(dir=".") as parent:
        folder = write_model(Path(parent), {**FILES, "model.yaml": text, **fault.files})
        with contextlib.chdir(parent):
            return "".join(f"{problem.line()}\n" for problem in lint_model(Path(folder.name)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        GOLDEN.write_text(report(Path(scratch)), encoding="utf-8")
