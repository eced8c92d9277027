"""The range run of one prepared graph. Runs in a child job: `qnn.ranges.job:measure_ranges`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from qnn.errors.ranges import RangeRunFailed
from qnn.npz import read_npz
from qnn.prepare.load import load
from qnn.ranges.compiled_form import compiled_form, prepared_form, run, session_of
from qnn.ranges.facts import Finding, Kind, OutputEffect, RangeFacts, TensorRange, save_ranges
from qnn.ranges.probe import FLOATS, look, probes_of, weights_of
from qnn.ranges.remedies import Remedies
from qnn.ranges.request import RangeRequest
from qnn.ranges.rules import FP16_MAX, Site, sites
from qnn.ranges.simulate import effect, is_wrong, simulated
from qnn.ranges.statistics import Statistics, measure

# A constant whose largest magnitude is above this loses little that matters to fp16.
_SMALL_CONSTANT = 1e-3
# More groups of findings than this are not told apart: each costs a run.
_GROUPS = 6

# Operators whose argument's range matters most.
_WATCHED = frozenset({"CumSum", "Exp", "Log", "Pow", "ReduceMean", "ReduceSum", "Reciprocal", "Softplus", "Sqrt"})

Array = NDArray[Any]
Feeds = Mapping[str, Array]


def measure_ranges(request: RangeRequest) -> None:
    """Look at every float tensor, and say what leaves fp16 and whether it does harm; writes ranges.json.

    The graph is taken as the compiler gets it, or as it was prepared where ONNX Runtime cannot run that form. Where
    it can run neither, that is what is written.
    """
    try:
        try:
            facts = _measure(request, compiled_form(request.model))
        except RangeRunFailed:
            facts = _measure(request, prepared_form(request.model))
    except RangeRunFailed as error:
        facts = RangeFacts(request.graph, len(request.samples), (), (), (), error.message)
    save_ranges(facts, request.output)


def _measure(request: RangeRequest, model: ModelProto) -> RangeFacts:
    folder = request.model.parent
    samples = [read_npz(path) for path in request.samples]
    stats, losses, shapes = _constants(model, folder)
    probes = probes_of(model)
    dtypes = {tensor.name: tensor.data_type for tensor in model.graph.initializer if tensor.data_type in FLOATS}
    dtypes |= {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    dtypes |= {probe.name: probe.dtype for probe in probes}
    budget = max(request.budget, sum(weights.nbytes for _, weights in weights_of(model, folder)))
    for feeds in samples:
        given = ((value.name, feeds[value.name]) for value in model.graph.input if feeds[value.name].dtype.kind == "f")
        for name, array in chain(given, look(model, folder, feeds, probes, budget)):
            stats[name] = stats.get(name, Statistics()).with_(measure(array))
            shapes[name] = array.shape
    at = sites(model, stats, losses)
    effects, harmful = _harm(model, folder, at, samples, dtypes)
    return RangeFacts(
        graph=request.graph,
        samples=len(samples),
        tensors=_tensors(model, stats, shapes),
        findings=_findings(request.model, at, harmful),
        outputs=effects,
    )


def _constants(
    model: ModelProto, folder: Path
) -> tuple[dict[str, Statistics], dict[str, float], dict[str, tuple[int, ...]]]:
    """Of every float initializer: extremes, the share that fp16 rounds away, the shape."""
    stats, losses, shapes = {}, {}, {}
    for name, array in weights_of(model, folder):
        if array.size == 0:
            continue
        low, high = float(np.nanmin(array)), float(np.nanmax(array))
        small = max(abs(low), abs(high)) < _SMALL_CONSTANT
        if small or array.size == 1 or not (np.isfinite(low) and np.isfinite(high)):
            stats[name] = measure(np.asarray(array))
            losses[name] = _loss(np.asarray(array))
        else:
            stats[name] = Statistics(low, high)
        shapes[name] = tuple(array.shape)
    return stats, losses, shapes


def _loss(array: Array) -> float:
    wide = np.where(np.isfinite(array), array, 0).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        lost = np.where(np.abs(wide) > FP16_MAX, 0, wide - wide.astype(np.float16).astype(np.float64))
    norm = float(np.linalg.norm(wide))
    return float(np.linalg.norm(lost)) / norm if norm else 0.0


def _harm(
    model: ModelProto, folder: Path, at: Sequence[Site], samples: Sequence[Feeds], dtypes: Mapping[str, int]
) -> tuple[tuple[OutputEffect, ...], frozenset[str]]:
    """(what all sites together do to the outputs, the roots that do harm)."""
    counted = [site for site in at if site.kind is not Kind.COARSE]
    every = {site.tensor for site in counted}
    if not counted:
        return (), frozenset()
    names = [value.name for value in model.graph.output]
    truths = [_run(model, folder, names, feeds) for feeds in samples]

    def effects(of: Sequence[Site]) -> tuple[OutputEffect, ...]:
        copy = simulated(model, of, dtypes, leave=every - {site.tensor for site in of})
        got = [_run(copy, folder, names, feeds) for feeds in samples]
        return tuple(_worst(name, [t[name] for t in truths], [g[name] for g in got]) for name in names)

    together = effects(counted)
    if not any(is_wrong(found) for found in together):
        return together, frozenset()
    groups = _groups(counted)
    if len(groups) > _GROUPS:
        return together, frozenset(site.root for site in counted)
    alone = [group for group in groups if len(groups) > 1 and any(is_wrong(found) for found in effects(group))]
    return together, frozenset(site.root for group in alone or groups for site in group)


def _run(model: ModelProto, folder: Path, names: list[str], feeds: Feeds) -> dict[str, Array]:
    session = session_of(model, folder)
    needed = {value.name: feeds[value.name] for value in session.get_inputs()}
    return dict(zip(names, run(session, names, needed), strict=True))


def _worst(name: str, truths: Sequence[Array], got: Sequence[Array]) -> OutputEffect:
    found = [effect(name, truth, array) for truth, array in zip(truths, got, strict=True)]
    return OutputEffect(name, min(one.cosine for one in found), max(one.max_rel for one in found))


def _groups(at: Sequence[Site]) -> list[list[Site]]:
    """Sites that likely do harm together or not at all: of one kind, made by one operator, on one side of zero."""
    makers = {site.tensor: site for site in at if site.is_root}
    groups: dict[tuple[str, str, bool], list[Site]] = defaultdict(list)
    for site in at:
        root = makers.get(site.root, site)
        groups[root.kind, "" if root.node is None else root.node.op_type, root.value < 0].append(site)
    return list(groups.values())


def _findings(prepared: Path, at: Sequence[Site], harmful: frozenset[str]) -> tuple[Finding, ...]:
    roots = [site for site in at if site.is_root]
    if not roots:
        return ()
    remedies = Remedies(load(prepared))
    found = []
    for site in roots:
        remedy = remedies.of(site)
        op, node = ("constant or input", "") if site.node is None else (site.node.op_type, site.node.name)
        found.append(
            Finding(
                kind=site.kind,
                tensor=site.tensor,
                op=op,
                node=node,
                value=_plain(site.value),
                detail=_detail(site),
                remedy=remedy.text,
                rewrite=remedy.rewrite,
                harmful=site.kind is not Kind.COARSE and site.root in harmful,
            )
        )
    return tuple(found)


def _detail(site: Site) -> str:
    argument = "" if site.node is None or not site.node.input else site.node.input[0]
    number = f"{int(site.value)}" if site.kind is Kind.NAN else f"{site.value:.4g}"
    end = "-65504" if site.value < 0 else "65504"
    return _DETAILS[site.kind].format(value=number, argument=argument, end=end)


_DETAILS = {
    Kind.OVERFLOW: "reaches {value}, fp16 ends at {end}",
    Kind.UNDERFLOW: "is as small as {value}, where fp16 has 0 or one digit",
    Kind.EXP_LOW: "its argument {argument} falls to {value}; below -88 HTP answers with numbers up to 131008",
    Kind.LOG_LOW: "its argument {argument} falls to {value}, which is 0 in fp16, and the logarithm -7.6",
    Kind.LOG_HIGH: "its argument {argument} reaches {value}; beyond 65504 the logarithm is near 0",
    Kind.NAN: "{value} elements are not a number in the float run already",
    Kind.COARSE: "a running sum up to {value}, too coarse in fp16 for the terms that are added",
}


def _tensors(
    model: ModelProto, stats: Mapping[str, Statistics], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[TensorRange, ...]:
    makers = {name: (node.op_type, node.name) for node in model.graph.node for name in node.output}
    constants = {tensor.name for tensor in model.graph.initializer}
    makers |= {name: ("constant" if name in constants else "input", "") for name in stats if name not in makers}
    feeds: dict[str, set[str]] = defaultdict(set)
    for node in model.graph.node:
        for name in node.input:
            if node.op_type in _WATCHED:
                feeds[name].add(node.op_type)
            elif node.op_type == "Mul" and node.input[0] == node.input[1]:
                feeds[name].add("square")
    return tuple(
        _tensor(name, makers[name], shapes[name], of, tuple(sorted(feeds[name]))) for name, of in stats.items()
    )


def _tensor(
    name: str, maker: tuple[str, str], shape: tuple[int, ...], of: Statistics, feeds: tuple[str, ...]
) -> TensorRange:
    seen = of.minimum <= of.maximum
    low, high = (of.minimum, of.maximum) if seen else (0.0, 0.0)
    with np.errstate(over="ignore"):
        exp = float(np.exp(high))
    return TensorRange(
        name=name,
        op=maker[0],
        node=maker[1],
        shape=shape,
        minimum=low,
        maximum=high,
        smallest=_plain(of.smallest) if of.smallest != float("inf") else 0.0,
        tiny=of.tiny,
        not_finite=of.not_finite,
        square=_plain(max(low * low, high * high)),
        exp=_plain(exp),
        sum=_plain(of.sum),
        cumsum=_plain(of.cumsum),
        feeds=feeds,
    )


def _plain(value: float) -> float:
    """Infinity as the largest double, which JSON can hold."""
    return float(np.clip(value, -np.finfo(np.float64).max, np.finfo(np.float64).max))
