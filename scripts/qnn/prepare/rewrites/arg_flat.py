"""ArgMax and ArgMin that make an output, on a flat tensor."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.cast_flat import LAYERS
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "arg-flat"
_LEAST_RANK = 3
_MOST = 4  # dimensions that HTP has it for


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes: list[Change] = []
    layers = bool(view.nodes(*LAYERS))
    for node in view.nodes("ArgMax", "ArgMin"):
        shape, made = view.shape(node.input[0]), view.shape(node.output[0])
        if shape is None or made is None or len(shape) < _LEAST_RANK or view.is_quantized(node):
            continue
        axis = int(attribute(node, "axis", 0)) % len(shape)
        # Over the channels and without keeping their axis it is right, and common.
        kept = axis != 1 or bool(attribute(node, "keepdims", 1))
        # A result of five dimensions crashes the compiler, so it is left to be refused.
        if len(made) > _MOST:
            continue
        if len(shape) <= _MOST and not (layers and kept and _reaches_an_output(view, str(node.output[0]))):
            continue
        name = str(node.output[0])
        flat = [prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])]
        flat = flat[:2] if flat[2] == 1 else flat
        source = reshaped(view, str(node.input[0]), flat, f"{name}_flat_in")
        last = attribute(node, "select_last_index", 0)
        written = {"select_last_index": last} if last else {}
        best = view.add_node(node.op_type, [source], f"{name}_flat", axis=1, keepdims=0, **written)
        sizes = view.add_constant(f"{name}_shape", numpy.array(made, numpy.int64))
        changes.append(applied(NAME, view.replace(node, "Reshape", [best, sizes]), f"computed on {flat}"))
    return changes


def _reaches_an_output(view: GraphView, name: str) -> bool:
    """Whether positions come out of the graph as int64, perhaps after arithmetic."""
    if view.is_output(name):
        return True
    made = (str(output) for user in view.users(name) for output in user.output)
    return any(view.dtype(output) == TensorProto.INT64 and _reaches_an_output(view, output) for output in made)


REWRITE = Rewrite(
    name=NAME,
    title="An ArgMax that becomes an output is computed on a flat tensor",
    pattern="ArgMax or ArgMin of three or more dimensions whose result is an output as int64, in a graph with layers "
    "that the compiler computes with channels last, other than over axis 1 with keepdims 0; one of five dimensions "
    "with keepdims 0",
    why="Behind such a layer the compiler turns the result's axes and loses its type on the way: the binary has int32 "
    "where the graph says int64, and does not run. Reshaped to three dimensions before, it keeps it. It has "
    "none of five dimensions.",
    default=True,
    apply=_apply,
)
