"""The calls of chain.py, made inside runner.py's process. Needs NumPy and runner.py, nothing else of qnn-forge."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Document = dict[str, Any]
Shape = tuple[int, ...]

MOST = 256  # runs of one graph in one round: a chain that asks for more is mistaken, and would run for ever
# The places of the channels before and after, for the layouts that get mixed up.
_LAYOUTS = {
    (0, 2, 3, 1): "channels last where they belong first",
    (0, 3, 1, 2): "channels first where they belong last",
    (0, 2, 1): "the last two dimensions exchanged",
}


def act(request: Document, function: Callable[[], Callable[..., Any]]) -> Document:
    """Do what the request asks: `feed` or `metric`."""
    return _ACTIONS[request["action"]](request, function())


def _feed(request: Document, function: Callable[..., Any]) -> Document:
    runner = _runner()
    wanted = {name: (dtype, tuple(shape)) for name, dtype, shape in request["inputs"]}
    given = function(
        graph=request["graph"],
        turn=request["round"],
        inputs={name: shape for name, (_, shape) in wanted.items()},
        runs=_runs(request["runs"], request),
        sources=_sources(request),
    )
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise runner.Fault("type", f"returned a {type(given).__name__}, not one dictionary for each run of the graph")
    write_npz = runner._module(request["npz"], "npz").write_npz
    count = 0
    for count, arrays in enumerate(itertools.islice(given, MOST + 1), 1):
        if count > MOST:
            raise runner.Fault("chain-empty", f"gave more than {MOST} inputs for {request['graph']}")
        _check(arrays, wanted, f"{request['graph']}, run {count - 1}")
        write_npz(Path(request["output"], f"{count - 1:03d}.npz"), {name: np.asarray(arrays[name]) for name in wanted})
    if not count:
        raise runner.Fault("chain-empty", f"gave no inputs for {request['graph']} in round {request['round']}")
    return {"kind": "ok", "count": count}


def _check(arrays: object, wanted: Mapping[str, tuple[str, Shape]], where: str) -> None:
    """Raise the first kind of mismatch between what was made and what the graph takes, with all of that kind."""
    runner = _runner()
    if not isinstance(arrays, Mapping):
        raise runner.Fault("type", f"{where} is a {type(arrays).__name__}, not a dictionary")
    for kind, found in runner.problems(arrays, wanted):
        if found:
            hints = (
                [_layout(name, np.shape(arrays[name]), shape) for name, (_, shape) in wanted.items()]
                if kind == "shape"
                else []
            )
            fault = kind if kind in ("type", "finite") else "chain"
            raise runner.Fault(fault, f"{where}: {found[0]}", details=[*found[1:], *(hint for hint in hints if hint)])


def _layout(name: str, given: Shape, wanted: Shape) -> str:
    """What is mixed up, if one of the usual exchanges of dimensions explains the difference."""
    for order, words in _LAYOUTS.items():
        if given != wanted and len(order) == len(wanted) and tuple(wanted[place] for place in order) == given:
            return f"{name} has {words}"
    return ""


def _metric(request: Document, function: Callable[..., Any]) -> Document:
    runner = _runner()
    values = []
    for which in ("reference", "htp"):
        returned = function(
            runs=_runs(request[which], request),
            reference=_runs(request["reference"], request),
            sources=_sources(request),
        )
        where = "the float chain" if which == "reference" else "HTP's chain"
        values.append(runner._flat(returned, where, runner._first_line(function)))
    return {"kind": "ok", "values": values}


_ACTIONS = {"feed": _feed, "metric": _metric}


def _runs(files: list[list[str]], request: Document) -> dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Every run so far by graph, oldest first, as (inputs, outputs)."""
    read_npz = _runner()._module(request["npz"], "npz").read_npz
    runs: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for graph, inputs, outputs in files:
        runs.setdefault(graph, []).append((read_npz(Path(inputs)), read_npz(Path(outputs))))
    return runs


def _sources(request: Document) -> dict[str, Path]:
    return {name: Path(path) for name, path in request["sources"].items()}


def _runner() -> Any:
    """runner.py, which runs as the main program of this process."""
    return sys.modules["__main__"]
