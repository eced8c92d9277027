"""A uint8 or int64 output of three and more dimensions, cast on a flat tensor."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView

NAME = "cast-flat"
# What the compiler computes with channels last, which it undoes behind it.
LAYERS = (
    "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool", "GlobalMaxPool",
    "GridSample", "InstanceNormalization", "LpPool", "MaxPool", "Resize", "SpaceToDepth", "Upsample",
)  # fmt: skip
_LEAST_RANK = 3


# Of these int64 outputs are right, or are mended by another rewrite (arg-flat); Reshape makes the layout flat.
_FLAT = frozenset({"ArgMax", "ArgMin", "Flatten", "Reshape", "TopK"})


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes: list[Change] = []
    if not view.nodes(*LAYERS):
        return changes
    for name in [str(value.name) for value in model.graph.output]:
        node, shape, dtype = view.maker(name), view.shape(name), view.dtype(name)
        if node is None or shape is None or len(shape) < _LEAST_RANK:
            continue
        if node.op_type == "Cast" and dtype in (TensorProto.UINT8, TensorProto.INT64):
            source = str(node.input[0])
            view.remove(node)
        elif dtype == TensorProto.INT64 and node.op_type not in _FLAT:
            inner = view.fresh(f"{name}_inner")
            view.rename_output(node, name, inner)
            source = view.add_node("Cast", [inner], f"{name}_int32", to=TensorProto.INT32)
        else:
            continue
        changes.append(applied(NAME, node, f"cast on {_cast_flat(view, source, name, dtype, shape)}"))
    return changes


def _cast_flat(view: GraphView, source: str, name: str, dtype: int, shape: tuple[int, ...]) -> list[int]:
    """Make the output of a tensor by a Cast of a matrix; returns the matrix' shape."""
    rows = [shape[0], prod(shape[1:])]
    flat = reshaped(view, source, rows, f"{name}_flat")
    cast = view.add_node("Cast", [flat], f"{name}_flat_cast", to=dtype)
    sizes = view.add_constant(f"{name}_shape", numpy.array(shape, numpy.int64))
    view.put("Reshape", [cast, sizes], [name], f"{name}_as_was")
    return rows


REWRITE = Rewrite(
    name=NAME,
    title="A uint8 or int64 output is cast on a flat tensor",
    pattern="Outputs as int64, or cast to uint8, of three or more dimensions, in a graph with layers "
    "that the compiler computes with channels last (Conv, pooling, Resize …)",
    why="Behind such a layer a tensor keeps the layout until something needs another one, here the output. "
    "The compiler has no Transpose of plain uint8, and ends with an error that names no node; of int64 it "
    "makes an int32 output, which does not run. A Reshape to two dimensions makes the layout flat before "
    "the cast, and moves no number.",
    default=True,
    apply=_apply,
)
