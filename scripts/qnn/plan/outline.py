"""What planning needs to know of a model, and a quick way to read just that.

Checking a model.yaml in full takes some 15 ms, and 1,000 models are planned in two seconds. So the file is read by
libyaml alone (0.3 ms) and only the keys that planning uses are looked at. Whatever is not plainly right is left to
`qnn.model.load.load_model`: it gives the model, or raises every problem with its line and column.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from qnn.errors.model import InvalidModel, Problem
from qnn.model.document import MAX_BYTES
from qnn.model.licences import restriction
from qnn.model.load import MODEL_FILE, load_model
from qnn.model.spec import Graph, Model

_DEFAULT_BUCKET = "default"
_PRECISIONS = frozenset({"fp16", "w8a16", "w8a8", "w4a16", "mixed"})
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ANCHOR = re.compile(rb"(?:^|[\s,\[{:?-])&\S", re.MULTILINE)
_SCALAR = "s"


@dataclass(frozen=True)
class OutlineGraph:
    """One graph: its name and the bytes of its weights, by precision (0 where the YAML does not say)."""

    name: str
    weights: Mapping[str, int]


@dataclass(frozen=True)
class Outline:
    """A model without what planning does not need. `folder` is the path as it was given.

    `exclude` holds (chip expressions, reason). `samples` is how many samples every binary is verified with.
    `restriction` is what qnn.model.licences says of the licence.
    """

    name: str
    folder: str
    buckets: tuple[str, ...]
    precisions: tuple[str, ...]
    socs: tuple[str, ...]
    exclude: tuple[tuple[tuple[str, ...], str], ...]
    graphs: tuple[OutlineGraph, ...]
    samples: int
    restriction: str = ""


def read_outlines(folders: Sequence[Path]) -> tuple[Outline, ...]:
    """The outlines of the models in several folders. Raises one InvalidModel (QF100) with the errors of all."""
    outlines: list[Outline] = []
    problems: list[Problem] = []
    for folder in folders:
        try:
            outlines.append(read_outline(folder))
        except InvalidModel as invalid:
            problems += invalid.problems
    if problems:
        raise InvalidModel(problems)
    return tuple(outlines)


def read_outline(folder: Path) -> Outline:
    """The outline of the model in a folder. Raises InvalidModel (QF100) when planning cannot read it.

    Not everything that lint finds is found here: only what planning reads is looked at.
    """
    return _read_quickly(folder) or outline_of(load_model(folder))


def outline_of(model: Model) -> Outline:
    """The outline of a model that was read in full."""
    graphs = tuple(
        OutlineGraph(graph.name, {name: _weights(model, graph, name) for name in model.precisions})
        for graph in model.graphs
    )
    return Outline(
        name=model.name,
        folder=str(model.folder),
        buckets=tuple(sorted(model.buckets)),
        precisions=model.precisions,
        socs=model.targets.socs,
        exclude=tuple((exclusion.socs, exclusion.reason) for exclusion in model.targets.exclude),
        graphs=graphs,
        samples=model.checks.samples,
        restriction=restriction(model.licence.spdx),
    )


def _weights(model: Model, graph: Graph, precision: str) -> int:
    """Bytes of a graph's ONNX file; for an exported graph of all sources, since any may hold its weights."""
    if graph.export is not None:
        return sum(source.size or 0 for source in model.sources.values())
    name = graph.source_for(precision)
    source = model.sources[name]
    return sum(model.sources[part].size or 0 for part in (name, *source.beside))


def _read_quickly(folder: Path) -> Outline | None:
    """The outline, or None when anything is not plainly as it should be."""
    file = os.path.join(folder, MODEL_FILE)
    if os.path.islink(file) or not os.path.isfile(file):
        return None
    with open(file, "rb") as opened:
        raw = opened.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES or _ANCHOR.search(raw):
        return None  # anchors can make a small file large; the full reader refuses them
    try:
        return _outline(_load(raw), folder)
    except (yaml.YAMLError, _Unclear, KeyError, TypeError, ValueError, AttributeError):
        return None


class _Unclear(Exception):
    """Something is missing or of another kind than planning expects."""


_Base: type[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Texts(_Base):  # type: ignore[misc] # the base is libyaml's where it was built in
    """Every scalar is a text, so no tag has to be found for any."""

    def resolve(self, kind: object, value: object, implicit: object) -> str:  # noqa: ARG002 - PyYAML's signature
        return _SCALAR

    def descend_resolver(self, current_node: object, current_index: object) -> None:
        """Paths decide no tag either."""

    def ascend_resolver(self) -> None:
        """Paths decide no tag either."""


def _load(raw: bytes) -> Any:
    loader = _Texts(raw)
    try:
        return _plain(loader.get_single_node())
    finally:
        loader.dispose()


def _plain(node: Any) -> Any:
    """Texts, lists and mappings of a node; libyaml itself refuses nesting that is too deep to recurse."""
    kind = type(node)
    if kind is yaml.ScalarNode:
        return node.value
    if kind is yaml.MappingNode:
        return {_plain(key): _plain(value) for key, value in node.value}
    if kind is yaml.SequenceNode:
        return [_plain(item) for item in node.value]
    raise _Unclear


def _outline(data: Any, folder: Path) -> Outline:
    name = _matching(data["name"], _NAME)
    if name != os.path.basename(os.path.realpath(folder)):
        raise _Unclear
    precisions = _texts(data["precisions"])
    if not _PRECISIONS.issuperset(precisions) or len(set(precisions)) != len(precisions):
        raise _Unclear
    targets, checks = data["targets"], data["checks"]
    sizes = {source: int(given.get("size", 0)) for source, given in data["sources"].items()}
    beside = {source: _texts(given["beside"]) for source, given in data["sources"].items() if "beside" in given}

    def weights(graph: Mapping[str, Any]) -> dict[str, int]:
        if ("source" in graph) == ("export" in graph):
            raise _Unclear
        if "export" in graph:
            return dict.fromkeys(precisions, sum(sizes.values()))
        source = graph["source"]
        named = {word: source if isinstance(source, str) else source.get(word, source.get("*")) for word in precisions}
        return {word: sizes[own] + sum(sizes[other] for other in beside.get(own, ())) for word, own in named.items()}

    return Outline(
        name=name,
        folder=str(folder),
        buckets=tuple(sorted(_matching(bucket, _BUCKET) for bucket in data.get("buckets", {_DEFAULT_BUCKET: {}}))),
        precisions=precisions,
        socs=_texts(targets["socs"]),
        exclude=tuple((_texts(item["socs"]), _text(item["reason"])) for item in targets.get("exclude", ())),
        graphs=tuple(OutlineGraph(_text(key), weights(graph)) for key, graph in _some(data["graphs"]).items()),
        samples=int(checks.get("count", 1)),
        restriction=restriction(data["licence"].get("spdx")),
    )


def _matching(value: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise _Unclear
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _Unclear
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise _Unclear
    return tuple(_text(item) for item in value)


def _some(value: dict[str, Any]) -> dict[str, Any]:
    if not value:
        raise _Unclear
    return value
