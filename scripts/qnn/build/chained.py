"""What was measured of a chain, as it is kept in the store, and the job that measures it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.build.chain import Step
from qnn.build.measured import MetricValue
from qnn.verify.comparison import OutputComparison

_FILE = "chain.json"


@dataclass(frozen=True)
class ChainGraph:
    """One graph of the chain: how often it ran on float and on HTP, and its outputs there compared.

    `outputs` is empty where the two ran it different numbers of times.
    """

    name: str
    float_runs: int
    htp_runs: int
    outputs: tuple[OutputComparison, ...]


@dataclass(frozen=True)
class Chained:
    """All that is known of a chain's numbers: its graphs in order, the values of its metric."""

    graphs: tuple[ChainGraph, ...]
    metrics: tuple[MetricValue, ...]


@dataclass(frozen=True)
class CompareChains:
    """Compare the steps of two chains; `outputs` names the outputs of each graph, in its order."""

    truth: tuple[Step, ...]
    htp: tuple[Step, ...]
    outputs: tuple[tuple[str, tuple[str, ...]], ...]


def compare_chains(request: CompareChains) -> tuple[ChainGraph, ...]:
    """The error that has come together at every graph: HTP's chain against the float one, run by run. For a child."""
    return tuple(_compare(graph, names, request.truth, request.htp) for graph, names in request.outputs)


def _compare(graph: str, names: tuple[str, ...], truth: Sequence[Step], htp: Sequence[Step]) -> ChainGraph:
    from qnn.npz import read_npz  # noqa: PLC0415 - the parent imports this module, and never numpy
    from qnn.verify.compare import compare_sample, merge  # noqa: PLC0415

    sides = [[step for step in steps if step.graph == graph] for steps in (truth, htp)]
    wanted, got = ([path for step in side for path in step.outputs] for side in sides)
    merged: tuple[OutputComparison, ...] = ()
    if [len(step.outputs) for step in sides[0]] == [len(step.outputs) for step in sides[1]]:
        for reference, result in zip(wanted, got, strict=True):
            first, second = read_npz(reference), read_npz(result)
            compared = tuple(compare_sample(name, first[name], second[name]) for name in names)
            merged = tuple(merge(*pair) for pair in zip(merged, compared, strict=True)) if merged else compared
    return ChainGraph(graph, len(wanted), len(got), merged)


def save_chain(graphs: tuple[ChainGraph, ...], folder: Path) -> None:
    """Write chain.json."""
    from cattrs import unstructure  # noqa: PLC0415

    (folder / _FILE).write_text(json.dumps(unstructure(graphs), sort_keys=True, indent=1), encoding="utf-8")


def load_chain(folder: Path) -> tuple[ChainGraph, ...]:
    """Read chain.json."""
    from cattrs import structure  # noqa: PLC0415

    return structure(json.loads((folder / _FILE).read_text(encoding="utf-8")), tuple[ChainGraph, ...])
