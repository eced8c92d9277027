"""RMS norms of short rows in several batches, which HTP computes wrongly."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "rms-norm-rows"
# Rows of up to 32 were wrong, of 33 and more right (QAIRT 2.51, SM8650 and SM8850).
_SHORT = 32


def apply(model: ModelProto) -> list[Change]:
    """Normalise short rows as a matrix, with a Reshape before and behind."""
    view = GraphView(model)
    changes = []
    for node in view.nodes("RMSNormalization"):
        shape = view.shape(node.input[0])
        axis = attribute(node, "axis", -1)
        if shape is None or axis % len(shape) != len(shape) - 1 or view.is_quantized(node):
            continue
        if shape[-1] <= _SHORT and prod(shape[:-2]) > 1:
            changes.append(_flatten(view, node, shape))
    return changes


def _flatten(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> Change:
    made, rows = node.output[0], prod(shape[:-1])
    flat = view.add_constant(f"{made}_flat", numpy.array([rows, shape[-1]], numpy.int64))
    back = view.add_constant(f"{made}_shape", numpy.array(shape, numpy.int64))
    source = view.add_node("Reshape", [node.input[0], flat], f"{made}_rows")
    attributes = {
        name: attribute(node, name) for name in ("epsilon", "stash_type") if attribute(node, name) is not None
    }
    normed = view.add_node("RMSNormalization", [source, *node.input[1:]], f"{made}_normed", axis=-1, **attributes)
    new = view.replace(node, "Reshape", [normed, back])
    return applied(NAME, new, f"{list(shape)} is normalised as {rows} rows of {shape[-1]}")


REWRITE = Rewrite(
    name=NAME,
    title="RMS norms of rows of up to 32 are computed as a matrix",
    pattern="RMSNormalization over a last axis of up to 32 elements, with more than one batch of rows before it",
    why="HTP answers wrongly: [2, 16, 32] came out with cosine 0.04, [4, 64, 16] with 0.6, while [1, 64, 16], "
    "[64, 16] and rows of 33 and more are right (QAIRT 2.51, SM8650 and SM8850). A Reshape to rows and back moves "
    "nothing in memory and computes the same bit for bit.",
    default=True,
    apply=apply,
)
