"""A uint8 or int64 output of three and more dimensions, cast on a flat tensor."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "cast-flat"
# What the compiler computes with channels last, which it undoes behind it.
LAYERS = (
    "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool", "GlobalMaxPool",
    "GridSample", "InstanceNormalization", "LpPool", "MaxPool", "Resize", "SpaceToDepth", "Upsample",
)  # fmt: skip
_LEAST_RANK = 3


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes: list[Change] = []
    if not view.nodes(*LAYERS):
        return changes
    for node in view.nodes("Cast"):
        made, shape = str(node.output[0]), view.shape(str(node.output[0]))
        target = int(attribute(node, "to"))
        if target not in (TensorProto.UINT8, TensorProto.INT64) or not view.is_output(made) or shape is None:
            continue
        if len(shape) < _LEAST_RANK:
            continue
        rows = [shape[0], prod(shape[1:])]
        flat = reshaped(view, str(node.input[0]), rows, f"{made}_flat")
        cast = view.add_node("Cast", [flat], f"{made}_flat_cast", to=target)
        sizes = view.add_constant(f"{made}_shape", numpy.array(shape, numpy.int64))
        changes.append(applied(NAME, view.replace(node, "Reshape", [cast, sizes]), f"cast on {rows}"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="A uint8 or int64 output is cast on a flat tensor",
    pattern="Cast to uint8 or int64 of three or more dimensions that makes a graph output, in a graph with layers "
    "that the compiler computes with channels last (Conv, pooling, Resize …)",
    why="Behind such a layer a tensor keeps the layout until something needs another one, here the output. "
    "The compiler has no Transpose of plain uint8, and ends with an error that names no node; of int64 it "
    "makes an int32 output, which does not run. A Reshape to two dimensions makes the layout flat before "
    "the cast, and moves no number.",
    default=True,
    apply=_apply,
)
