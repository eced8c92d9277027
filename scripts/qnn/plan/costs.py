"""What a variant costs to prepare and, for each chip, to compile and verify: measured, or estimated from weights."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnn.chips.table import needs_fp16
from qnn.plan.outline import Outline, OutlineGraph

COSTS_FILE = Path(__file__).with_name("costs.yaml")
_MB = 1e6


@dataclass(frozen=True)
class Cost:
    """CPU seconds: `prepare` once, `compile` and `verify` for each chip. `bytes` of context binaries for each chip."""

    prepare: float
    compile: float
    verify: float
    bytes: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.prepare + other.prepare,
            self.compile + other.compile,
            self.verify + other.verify,
            self.bytes + other.bytes,
        )


@dataclass(frozen=True)
class Line:
    """``base + per_mb × MB``, in CPU seconds."""

    base: float
    per_mb: float

    def at(self, weights: int) -> float:
        """CPU seconds for so many bytes of weights."""
        return self.base + self.per_mb * weights / _MB


@dataclass(frozen=True)
class CostTable:
    """costs.yaml. `setup` is seconds a job, `measured` has the cost of graphs by (model, graph)."""

    setup: float
    prepare: Line
    compile: Line
    verify: Line
    fp16_bytes: float
    quantized_bytes: float
    unknown_weights: int
    measured: Mapping[tuple[str, str], Cost]

    def variant(self, model: Outline, precision: str) -> Cost:
        """All graphs of a variant together."""
        return sum((self._graph(model, graph, precision) for graph in model.graphs), Cost(0.0, 0.0, 0.0, 0))

    def is_measured(self, model: Outline) -> bool:
        """Whether nothing of the model has to be estimated."""
        return all((model.name, graph.name) in self.measured for graph in model.graphs)

    def _graph(self, model: Outline, graph: OutlineGraph, precision: str) -> Cost:
        known = self.measured.get((model.name, graph.name))
        if known is not None:
            return known
        weights = graph.weights[precision] or self.unknown_weights
        ratio = self.fp16_bytes if needs_fp16(precision) else self.quantized_bytes
        return Cost(
            prepare=self.prepare.at(weights),
            compile=self.compile.at(weights),
            verify=self.verify.base + (self.verify.at(weights) - self.verify.base) * model.samples,
            bytes=round(weights * ratio),
        )


@functools.cache
def load_costs(path: Path = COSTS_FILE) -> CostTable:
    """The costs that ship with qnn-forge. Raises KeyError or ValueError for a file that breaks the format."""
    import yaml  # noqa: PLC0415 - tables made by hand need none

    loader = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
    document: Any = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - BaseLoader makes only strings
    estimate = document["estimate"]
    lines = {
        key: Line(float(estimate[key]["base"]), float(estimate[key]["per_mb"]))
        for key in ("prepare", "compile", "verify")
    }
    return CostTable(
        setup=float(document["setup"]),
        **lines,
        fp16_bytes=float(estimate["bytes"]["fp16"]),
        quantized_bytes=float(estimate["bytes"]["quantized"]),
        unknown_weights=int(estimate["weights"]),
        measured={
            (model, graph): Cost(float(row["prepare"]), float(row["compile"]), float(row["verify"]), int(row["bytes"]))
            for model, graphs in document["models"].items()
            for graph, row in graphs.items()
        },
    )
