"""What a build hands back: one result a target, each a bundle or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qnn.build.measured import Measured
from qnn.build.metrics import summarise
from qnn.errors.base import ForgeError
from qnn.model.spec import MetricGate
from qnn.plan.targets import Target
from qnn.verify.comparison import Kind


@dataclass(frozen=True)
class GraphResult:
    """One graph of a bundle: bytes of its binary, worst cosine of its outputs, its metric in a few words, and what the
    build says of it besides.

    The row ``chain`` is no graph but all of them in a row; it has no size.
    """

    graph: str
    size: int
    cosine: float | None
    max_abs: float | None
    metric: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class TargetResult:
    """One target: where its bundle lies, or why there is none.

    `reused` is True when the finished bundle was in the store already; `verified` is False where --verify left the
    chip out; `seconds` is wall time.
    """

    target: Target
    graphs: tuple[GraphResult, ...]
    folder: Path | None
    archive: Path | None
    sha256: str | None
    verified: bool
    reused: bool
    seconds: float
    error: ForgeError | None = None

    @property
    def verdict(self) -> str:
        """ok, unverified or failed."""
        if self.error is not None:
            return "failed"
        return "ok" if self.verified else "unverified"


def graph_results(bundle: Path) -> tuple[GraphResult, ...]:
    """What the manifest of a finished bundle says of its graphs.

    The manifest was written by this program and its sha256 was checked by the store, so it is read as it is.
    """
    document = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    sizes = {file["path"]: file["size"] for file in document["files"]}
    graphs = tuple(
        GraphResult(
            graph=graph["name"],
            size=sizes[graph["binary"]],
            cosine=min((o["cosine"] for o in graph["numerics"] if o["cosine"] is not None), default=None),
            max_abs=max((o["max_abs"] for o in graph["numerics"] if o["max_abs"] is not None), default=None),
            metric=", ".join(_metric(metric) for metric in graph["metrics"]),
            remarks=tuple(graph["remarks"]),
        )
        for graph in document["graphs"]
    )
    return (*graphs, *_chain(document.get("chain")))


def _chain(chain: Mapping[str, Any] | None) -> tuple[GraphResult, ...]:
    """A row for the graphs run one after another. Where a metric judges them, the outputs may stand in another order;
    without one, they are those of the last graph.
    """
    if chain is None:
        return ()
    last = [] if chain["metrics"] else chain["graphs"][-1]["numerics"]
    return (
        GraphResult(
            graph="chain",
            size=0,
            cosine=min((o["cosine"] for o in last if o["cosine"] is not None), default=None),
            max_abs=max((o["max_abs"] for o in last if o["max_abs"] is not None), default=None),
            metric=", ".join(_metric(metric) for metric in chain["metrics"]),
        ),
    )


def measured_result(graph: str, size: int, measured: Measured, gates: Mapping[str, MetricGate]) -> GraphResult:
    """The same of a graph that was measured and whose bundle was not made."""
    real = [output for output in measured.outputs if output.kind is Kind.FLOAT]
    return GraphResult(
        graph=graph,
        size=size,
        cosine=min((output.cosine for output in real), default=None),
        max_abs=max((output.max_abs for output in real), default=None),
        metric=", ".join(_metric(asdict(metric)) for metric in summarise(measured.metrics, gates)),
    )


def _metric(metric: Mapping[str, Any]) -> str:
    """speech equal 16/16, probability_error 0.003"""
    if isinstance(metric["htp_value"], str | bool):
        return f"{metric['name']} equal {metric['equal']}/{metric['samples']}"
    return f"{metric['name']} {_short(metric['htp_value'])}"


def _short(value: float) -> str:
    return f"{value:.4g}"
