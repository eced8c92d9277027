"""What a rewrite is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change


@dataclass(frozen=True)
class Rewrite:
    """One exact transformation of a prepared graph.

    `name` is the key under `graphs.NAME.rewrites`; `title` says what it does, `pattern` what it looks for, `why` what
    is wrong with the form found and why the new one computes the same: docs/rewrites.md is made of the three. With
    `default` it runs unless model.yaml switches it off.

    `apply` edits the model in place and returns one Change a place, made by `applied` or `refused`. It may rely on:
    canonical order, unique node names, a value info with type and fixed shape for every tensor, far weights left in
    their files (qnn.prepare.weights). It must keep the names, types and shapes of graph inputs and outputs. It may
    leave behind dead nodes, any order, nodes without names, and tensors without value infos: the registry mends
    those before the next rewrite runs.
    """

    name: str
    title: str
    pattern: str
    why: str
    default: bool
    apply: Callable[[ModelProto], list[Change]]


def applied(rewrite: str, node: NodeProto, detail: str) -> Change:
    """The record of one application, by the name of the node whose result it now computes."""
    return Change("rewritten", f"{node.name} ({node.op_type})", f"{rewrite}: {detail}")


def refused(rewrite: str, node: NodeProto, why: str) -> Change:
    """The record of a place where the pattern is, and the rewrite would not be exact or cannot be done."""
    return Change("not-rewritten", f"{node.name} ({node.op_type})", f"{rewrite}: {why}")
