"""Pad in the modes edge and wrap, and the forms of reflect that the compiler refuses, as one Gather an axis."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import moved
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "pad-by-gather"
_REFLECT_RANK = 4


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Pad"):
        mode = (attribute(node, "mode") or b"constant").decode()
        shape = view.shape(node.input[0])
        if mode == "constant" or shape is None:
            continue
        pads = pads_of(view, node, len(shape))
        if pads is None:
            changes.append(refused(NAME, node, "its pads are computed in the graph"))
            continue
        moves = [
            (axis, padded_positions(mode, size, begin, end))
            for axis, (size, (begin, end)) in enumerate(zip(shape, pads, strict=True))
            if (begin, end) != (0, 0)
        ]
        if mode == "wrap" and any(pad < 0 for pair in pads for pad in pair):
            changes.append(refused(NAME, node, "mode wrap with negative pads"))
            continue
        plain = len(shape) <= _REFLECT_RANK and all(begin >= 0 and end >= 0 for begin, end in pads)
        if not moves or (mode == "reflect" and plain):
            continue
        moved(view, node, moves)
        changes.append(applied(NAME, node, f"mode {mode} became {len(moves)} Gather of constant positions"))
    return changes


def padded_positions(mode: str, size: int, begin: int, end: int) -> Array:
    """Which element of an axis each element of the padded axis is; negative pads cut off."""
    at = numpy.arange(-begin, size + end, dtype=numpy.int64)
    if mode == "edge" or size == 1:
        return numpy.clip(at, 0, size - 1)
    if mode == "wrap":
        return at % size
    period = 2 * (size - 1)
    folded = at % period
    return numpy.minimum(folded, period - folded)


def pads_of(view: GraphView, node: NodeProto, rank: int) -> list[tuple[int, int]] | None:
    """(begin, end) of every axis; None when they are not constant. An attribute up to opset 10, an input since."""
    written = attribute(node, "pads")
    if written is None:
        array = view.constant(node.input[1]) if len(node.input) > 1 else None
        if array is None:
            return None
        written = array.tolist()
    axes = list(range(rank))
    if len(node.input) > 3 and node.input[3]:
        chosen = view.constant(node.input[3])
        if chosen is None:
            return None
        axes = [int(axis) % rank for axis in chosen]
    pads = [(0, 0)] * rank
    for index, axis in enumerate(axes):
        pads[axis] = (int(written[index]), int(written[index + len(axes)]))
    return pads


REWRITE = Rewrite(
    name=NAME,
    title="Pad with copies of the edge becomes Gathers",
    pattern="Pad in mode edge or wrap; in mode reflect where it has a rank of 5 or negative pads",
    why="The compiler takes mode edge and leaves the border of the last axis unset (-131008, or values of "
    "another place), in every rank from 1 to 4; it refuses mode wrap, and reflect in rank 5. A Gather of "
    "constant positions an axis copies the same elements.",
    default=True,
    apply=_apply,
)
