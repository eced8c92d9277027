"""Outlines, changes and tables for the tests of planning."""

from __future__ import annotations

from collections.abc import Sequence

from qnn.chips.table import load_table
from qnn.plan.changes import KeyParts
from qnn.plan.costs import Cost, CostTable, Line
from qnn.plan.outline import Outline, OutlineGraph

TABLE = load_table()
PARTS = KeyParts(
    stages={"prepare": ("qnn.prepare.*",), "compile": ("qnn.toolchains.pip.*", "qnn.tensors"), "bundle": ("qnn",)},
    keys=("qnn.build.keys",),
    packages=("onnx", "onnxruntime-qnn"),
)


def outline(
    name: str = "toy",
    *,
    socs: Sequence[str] = ("all",),
    exclude: Sequence[tuple[tuple[str, ...], str]] = (),
    buckets: Sequence[str] = ("default",),
    precisions: Sequence[str] = ("fp16",),
    weights: int = 10_000_000,
    samples: int = 1,
) -> Outline:
    """A model of one graph."""
    graph = OutlineGraph("net", dict.fromkeys(precisions, weights))
    return Outline(
        name, f"models/{name}", tuple(buckets), tuple(precisions), tuple(socs), tuple(exclude), (graph,), samples
    )


def costs(setup: float = 45.0, prepare: float = 5.0, compiling: float = 2.0, verify: float = 10.0) -> CostTable:
    """Every graph costs the same, whatever its size: seconds."""
    return CostTable(
        setup=setup,
        prepare=Line(prepare, 0.0),
        compile=Line(compiling, 0.0),
        verify=Line(0.0, verify / 10),  # a sample of 10 MB
        fp16_bytes=0.5,
        quantized_bytes=1.0,
        unknown_weights=10_000_000,
        measured={("known", "net"): Cost(1.0, 2.0, 3.0, 4_000)},
    )
