"""From checked data to the dataclasses of qnn.model.spec. Decides nothing that a rule has not checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from qnn.model.spec import (
    Chain,
    Checks,
    Exclusion,
    Gates,
    Graph,
    InputSpec,
    Licence,
    Limits,
    MetricGate,
    Model,
    Publish,
    Source,
    SourceKind,
    Targets,
)

DEFAULT_BUCKET = "default"

# Data that the schema has passed: its types are known, though not to the type checker.
Data: TypeAlias = Mapping[str, Any]


def construct(data: Data, folder: Path) -> Model:
    """The model of data without errors. `folder` is where it was read."""
    return Model(
        name=data["name"],
        version=data["version"],
        summary=data["summary"],
        task=data["task"],
        licence=_licence(data["licence"]),
        sources={name: _source(name, source) for name, source in data["sources"].items()},
        graphs=tuple(_graph(name, graph) for name, graph in data["graphs"].items()),
        buckets=_buckets(data.get("buckets", {DEFAULT_BUCKET: {}})),
        precisions=tuple(data["precisions"]),
        targets=_targets(data["targets"]),
        checks=_checks(data["checks"]),
        requires=tuple(data.get("requires", ())),
        limits=_limits(data.get("limits", {})),
        publish=_publish(data.get("publish", {})),
        folder=folder,
    )


def _licence(data: Data) -> Licence:
    return Licence(data.get("spdx"), data.get("reason"), data.get("text"), data.get("attribution"))


def _source(name: str, data: Data) -> Source:
    kind = next(kind for kind in SourceKind if kind.value in data)
    size = data.get("size")
    return Source(
        name=name,
        kind=kind,
        locator=data[kind.value],
        member=data.get("file"),
        sha256=data.get("sha256"),
        size=None if size is None else int(size),
        beside=tuple(data.get("beside", ())),
    )


def _graph(name: str, data: Data) -> Graph:
    inputs = tuple(_input(key, value) for key, value in data["inputs"].items())
    outputs, rewrites = tuple(data.get("outputs", ())), dict(data.get("rewrites", {}))
    if "export" in data:
        return Graph(name, {}, inputs, None, data["export"], outputs, rewrites)
    source = data["source"]
    sources: Mapping[str, str] = {"*": source} if isinstance(source, str) else dict(source)
    # The fp16 source is the float model. Without one there is a single source, or rule QF133 has asked for a reference.
    truth = sources.get("fp16") or sources.get("*") or next(iter(sources.values()))
    return Graph(name, sources, inputs, data.get("reference", truth), None, outputs, rewrites)


def _input(name: str, data: list[Any] | Data) -> InputSpec:
    shape, dtype = (data, None) if isinstance(data, list) else (data["shape"], data.get("dtype"))
    return InputSpec(name, tuple(item if isinstance(item, str) else int(item) for item in shape), dtype)


def _buckets(data: Data) -> Mapping[str, Mapping[str, int]]:
    return {bucket: {symbol: int(value) for symbol, value in values.items()} for bucket, values in data.items()}


def _targets(data: Data) -> Targets:
    exclusions = (Exclusion(tuple(item["socs"]), item["reason"]) for item in data.get("exclude", ()))
    return Targets(tuple(data["socs"]), tuple(exclusions))


def _checks(data: Data) -> Checks:
    return Checks(
        data=data.get("data"),
        samples_dir=data.get("samples"),
        samples=int(data.get("count", Checks.samples)),
        metric=data.get("metric"),
        metric_gates={
            graph: {value: _metric_gate(gate) for value, gate in gates.items()}
            for graph, gates in data.get("metrics", {}).items()
        },
        gates=_gates(data.get("gates", {})),
        output_gates={
            graph: {output: _gates(gates) for output, gates in outputs.items()}
            for graph, outputs in data.get("outputs", {}).items()
        },
        chain=_chain(data["chain"]) if "chain" in data else None,
        ranges={graph: dict(tensors) for graph, tensors in data.get("ranges", {}).items()},
    )


def _chain(data: Data) -> Chain:
    return Chain(
        feed=data["feed"],
        rounds=int(data.get("rounds", Chain.rounds)),
        metric=data.get("metric"),
        metric_gates={value: _metric_gate(gate) for value, gate in data.get("metrics", {}).items()},
    )


def _gates(data: Data) -> Gates:
    return Gates(*(_number(data, key) for key in ("cosine", "max_abs", "max_rel", "argmax")))


def _metric_gate(data: str | Data) -> MetricGate:
    if isinstance(data, str):
        return MetricGate(equal=True)
    return MetricGate(False, _number(data, "min"), _number(data, "max"), _number(data, "max_drop"))


def _number(data: Data, key: str) -> float | None:
    return float(data[key]) if key in data else None


def _limits(data: Data) -> Limits:
    return Limits(float(data.get("memory_gb", Limits.memory_gb)), float(data.get("minutes", Limits.minutes)))


def _publish(data: Data) -> Publish:
    return Publish(data.get("github", False), data.get("huggingface"))
