"""Clip of 16-bit activations, computed on a flat tensor."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.quantized_activation import bounds_of, is_the_range, only_quantizer
from qnn.prepare.rewrites.steps import requantized, reshaped
from qnn.prepare.rewrites.view import GraphView

NAME = "quantized-clip-flat"
_FLAT_RANK = 2
_16_BITS = (TensorProto.UINT16, TensorProto.INT16)


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Clip"):
        before, behind = view.maker(node.input[0], "DequantizeLinear"), only_quantizer(view, str(node.output[0]))
        shape, bounds = view.shape(node.input[0]), bounds_of(view, node)
        if before is None or behind is None or shape is None or len(shape) <= _FLAT_RANK or bounds is None:
            continue
        if view.dtype(before.input[0]) not in _16_BITS or is_the_range(view, behind, bounds):
            continue
        flat = [shape[0], prod(shape[1:])]
        name = str(node.output[0])
        source = requantized(view, reshaped(view, str(node.input[0]), flat, f"{name}_flat_in"), before)
        clipped = requantized(view, view.add_node("Clip", [source, *node.input[1:]], f"{name}_flat"), behind)
        sizes = view.add_constant(f"{name}_shape", numpy.array(shape, numpy.int64))
        view.replace(node, "Reshape", [clipped, sizes])
        changes.append(applied(NAME, node, f"computed on {flat}"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="A Clip of 16 bits is computed on a flat tensor",
    pattern="Clip between 16-bit QuantizeLinear nodes, of three or more dimensions, that keeps less than their range",
    why="Behind a Conv the compiler takes the two together and loses the upper bound: 4.0 where 1.5 is right. With "
    "Reshapes around the Clip, quantized with the same parameters so that nothing is rounded again, it does not.",
    default=True,
    apply=_apply,
)
