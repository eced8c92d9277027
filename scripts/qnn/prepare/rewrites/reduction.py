"""How reductions say which axes they reduce: an attribute in older opsets, an input in newer ones."""

from __future__ import annotations

import numpy
from onnx import NodeProto

from qnn.prepare.rewrites.view import GraphView, attribute

# From this opset on every Reduce operator takes its axes as an input (ReduceSum from 13 on).
AXES_INPUT = 18


def axes_of(view: GraphView, node: NodeProto) -> tuple[int, ...] | None:
    """The reduced axes, none negative, in order; None when they are not constant or the rank is not known."""
    shape = view.shape(node.input[0])
    if shape is None:
        return None
    axes = attribute(node, "axes")
    if axes is None and len(node.input) > 1 and node.input[1]:
        array = view.constant(node.input[1])
        if array is None:
            return None
        axes = [int(axis) for axis in array.reshape(-1)]
    if not axes:
        return () if attribute(node, "noop_with_empty_axes", 0) else tuple(range(len(shape)))
    return tuple(sorted({axis % len(shape) for axis in axes}))


def axes_arguments(view: GraphView, axes: tuple[int, ...]) -> tuple[list[str], dict[str, list[int]]]:
    """(further inputs, attributes) of a Reduce operator other than ReduceSum, in the model's opset."""
    if view.opset() < AXES_INPUT:
        return [], {"axes": list(axes)}
    return [view.add_constant("axes", numpy.array(axes, numpy.int64))], {}
