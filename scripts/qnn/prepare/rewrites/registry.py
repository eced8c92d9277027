"""All rewrites in order, and how they are applied to a model."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache

from onnx import ModelProto

from qnn.prepare import canonical, shapes
from qnn.prepare.complete import complete_shapes
from qnn.prepare.prepared import Change
from qnn.prepare.rewrites import MODULES
from qnn.prepare.rewrites.base import Rewrite


@cache
def rewrites() -> tuple[Rewrite, ...]:
    """Every rewrite, in the order of application."""
    return tuple(importlib.import_module(f"qnn.prepare.rewrites.{module}").REWRITE for module in MODULES)


def apply_rewrites(model: ModelProto, settings: Mapping[str, bool]) -> tuple[ModelProto, list[Change]]:
    """The model after every rewrite that is on, and one Change for each place that was rewritten or left with a reason.

    `settings` are the switches of model.yaml by name; a rewrite that is not in it runs by its own default. Expects
    what `Rewrite.apply` may rely on, and leaves it so. Raises what shape inference raises (QF407, QF413), which would
    be a defect of a rewrite.
    """
    changes: list[Change] = []
    for rewrite in rewrites():
        if not settings.get(rewrite.name, rewrite.default):
            continue
        done = rewrite.apply(model)
        changes += done
        if any(change.kind == "rewritten" for change in done):
            model = _settle(model)
    return model, changes


def _settle(model: ModelProto) -> ModelProto:
    _drop_identities(model)
    canonical.sort_graph(model)
    canonical.settle_names(model)
    model = shapes.infer(model)
    complete_shapes(model)
    return model


def _drop_identities(model: ModelProto) -> None:
    """Let readers of an Identity read what it reads; one that makes an output stays only where it must."""
    graph = model.graph
    border = {value.name for value in (*graph.input, *graph.output)} | {tensor.name for tensor in graph.initializer}
    renames: dict[str, str] = {}
    kept = []
    for node in graph.node:
        if node.op_type != "Identity" or node.domain not in ("", "ai.onnx"):
            kept.append(node)
        elif node.output[0] not in border and node.output[0] not in renames:
            renames[node.output[0]] = node.input[0]
        elif node.input[0] not in border and node.input[0] not in renames:
            renames[node.input[0]] = node.output[0]
        else:
            kept.append(node)
    if not renames:
        return
    for node in kept:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                names[index] = _end(name, renames)
    del graph.node[:]
    graph.node.extend(kept)


def _end(name: str, renames: Mapping[str, str]) -> str:
    while name in renames:
        name = renames[name]
    return name
