"""Rules of graphs that are exported from PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qnn.errors.model import Kind, Problem
from qnn.model.rules.base import Rule
from qnn.model.rules.graphs import QUANTIZED
from qnn.model.rules.subject import Subject
from qnn.model.text import short

# Versions to propose: those that the tests export with.
TORCH = "torch==2.13.0"
ONNXSCRIPT = "onnxscript==0.7.1"


def _exported(subject: Subject) -> Iterator[str]:
    return (graph for graph in subject.keys("graphs") if subject.text("graphs", graph, "export") is not None)


def _required(subject: Subject) -> frozenset[str]:
    """Packages under `requires`, as PyPI compares names."""
    return frozenset(re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for _, pin in subject.texts("requires"))


class ExportIsFloat(Rule):
    """What: A model offers a quantized precision, and a graph of it is exported from PyTorch.

    Why: This version does not quantize. It compiles graphs that hold QuantizeLinear and DequantizeLinear nodes
    already, and an export gives the float graph.

    Mend: Take the precision out of `precisions`; or export and quantize the graph yourself and give both files as
    sources: `source: {fp16: encoder, w8a8: encoder-w8a8}`.
    """

    id = "QF135"
    title = "a quantized precision of an exported graph"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for graph in _exported(subject):
            for path, precision in subject.texts("precisions"):
                if precision in QUANTIZED:
                    message = f"{short(graph)} is exported in float, so there is nothing to compile for {precision}"
                    yield cls.problem(subject.at_value(*path), message, "delete it, or give ONNX files as source")


class ExportIsReference(Rule):
    """What: A graph has both `export` and `reference`.

    Why: The results that count for an exported graph are those of the exported file, which is compared with the
    PyTorch module itself. Another reference would go unused.

    Mend: Delete `reference`.
    """

    id = "QF136"
    title = "an exported graph with a reference"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for graph in _exported(subject):
            if subject.has("graphs", graph, "reference"):
                place = subject.at_key("graphs", graph, "reference")
                yield cls.problem(place, f"{short(graph)} is exported, and is its own reference", "delete it")


class ExportNeedsTorch(Rule):
    """What: A graph is exported from PyTorch, and `requires` has no torch.

    Why: export.py runs in an environment of its own, which holds what `requires` pins and nothing else.

    Mend: Add `torch==2.13.0`, or the version that the model was made with, and `onnxscript`, which its exporter uses.
    """

    id = "QF137"
    title = "an export without torch"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for graph in _exported(subject):
            if "torch" not in _required(subject):
                place = subject.at_key("graphs", graph, "export")
                yield cls.problem(place, "requires has no torch", f"add requires: [{TORCH}, {ONNXSCRIPT}]")


class ExportNeedsExporter(Rule):
    """What: A graph is exported from PyTorch, and `requires` has no onnxscript.

    Why: PyTorch's exporter needs the package onnxscript, and its version has a say in what comes out. Only the older
    exporter (`"exporter": "legacy"` in what export.py returns) does without.

    Mend: Add `onnxscript==0.7.1`. Where export.py asks for the older exporter, skip the hint.
    """

    id = "QF138"
    title = "an export without onnxscript"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        required = _required(subject)
        for graph in _exported(subject):
            if "torch" in required and "onnxscript" not in required:
                place = subject.at_key("graphs", graph, "export")
                yield cls.problem(place, "requires has no onnxscript", f"add {ONNXSCRIPT} to requires")
