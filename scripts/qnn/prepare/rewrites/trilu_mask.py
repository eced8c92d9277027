"""Trilu as a choice by a constant mask."""

from __future__ import annotations

import numpy
from onnx import ModelProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "trilu-mask"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Trilu"):
        shape = view.shape(node.input[0])
        if shape is None:
            continue
        offset: float | None = 0
        if len(node.input) > 1 and node.input[1]:
            offset = view.scalar(node.input[1])
        if offset is None:
            changes.append(refused(NAME, node, "its diagonal is computed in the graph"))
            continue
        rows, columns = numpy.arange(shape[-2])[:, None], numpy.arange(shape[-1])[None, :]
        kept = columns - rows >= int(offset) if attribute(node, "upper", 1) else columns - rows <= int(offset)
        name = str(node.output[0])
        mask = view.add_constant(f"{name}_kept", kept)
        if view.dtype(node.input[0]) == TensorProto.BOOL:  # ONNX Runtime has no Where of booleans
            view.replace(node, "And", [mask, str(node.input[0])])
            changes.append(applied(NAME, node, "And with a constant mask"))
            continue
        zero = numpy.zeros((), tensor_dtype_to_np_dtype(view.dtype(node.input[0])))
        view.replace(node, "Where", [mask, str(node.input[0]), view.add_constant(f"{name}_zero", zero)])
        changes.append(applied(NAME, node, "Where by a constant mask"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="Trilu becomes Where",
    pattern="Trilu of a constant diagonal",
    why="The compiler has no form of Trilu. Which elements it keeps is known from the shape.",
    default=True,
    apply=_apply,
)
