"""Calls chain.py: what a graph of a chain is given, and how well the whole chain did its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.model_code.call import absolute, call
from qnn.model_code.requests import MetricPair, ModelCode
from qnn.tensors import TensorSpec

_ACTIONS = Path(__file__).with_name("chain_actions.py")


@dataclass(frozen=True)
class Ran:
    """One run of a graph: .npz files of what went in and what came out."""

    graph: str
    inputs: Path
    outputs: Path


@dataclass(frozen=True)
class FeedRequest:
    """Ask for the inputs of `graph` in `round` (from 0), given all runs so far; ``000.npz`` … go to `output`."""

    code: ModelCode
    graph: str
    round: int
    inputs: tuple[TensorSpec, ...]
    runs: Sequence[Ran]
    sources: Mapping[str, Path]
    output: Path


@dataclass(frozen=True)
class ChainMetricRequest:
    """Ask for the metric of a whole chain, on float and on HTP."""

    code: ModelCode
    reference: Sequence[Ran]
    htp: Sequence[Ran]
    sources: Mapping[str, Path]


def run_feed(request: FeedRequest) -> tuple[Path, ...]:
    """What chain.py's feed function makes for a graph, one .npz file for each time it is to run.

    Raises ChainInterface (QF650) with the first input that is not what the graph takes, ChainEmpty (QF651), and the
    errors of qnn.errors.model_code (QF801 to QF804, QF806, QF810).
    """
    answer = call(
        request.code,
        {
            "actions": str(_ACTIONS),
            "action": "feed",
            "graph": request.graph,
            "round": request.round,
            "inputs": [[tensor.name, tensor.dtype, list(tensor.shape)] for tensor in request.inputs],
            "runs": _files(request.runs),
            "sources": absolute(request.sources),
            "output": str(request.output.absolute()),
        },
    )
    return tuple(request.output / f"{number:03d}.npz" for number in range(answer["count"]))


def run_chain_metric(request: ChainMetricRequest) -> MetricPair:
    """The metric's values for the float chain and for HTP's.

    Raises the errors of qnn.errors.model_code (QF801 to QF804, QF811, QF812).
    """
    answer = call(
        request.code,
        {
            "actions": str(_ACTIONS),
            "action": "metric",
            "reference": _files(request.reference),
            "htp": _files(request.htp),
            "sources": absolute(request.sources),
        },
    )
    return MetricPair(*answer["values"])


def _files(runs: Sequence[Ran]) -> list[list[str]]:
    return [[run.graph, str(run.inputs.absolute()), str(run.outputs.absolute())] for run in runs]
