"""LayerNormalization whose scale is int8 beside uint8 activations."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "quantized-layer-norm"
_SHIFT = 128


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("LayerNormalization", "InstanceNormalization", "RMSNormalization", "GroupNormalization"):
        activations, scale = (view.maker(name, "DequantizeLinear") for name in node.input[:2])
        if activations is None or scale is None:
            continue
        signed = view.constant(scale.input[0])
        if signed is None or signed.dtype != numpy.int8:
            continue
        if view.dtype(activations.input[0]) not in (TensorProto.UINT8, TensorProto.UINT16):
            continue
        view.set_input(node, 1, _unsigned(view, scale, f"{node.output[0]}_scale"))
        changes.append(applied(NAME, node, "scale as uint8 with its zero point raised by 128"))
    return changes


def _unsigned(view: GraphView, scale: NodeProto, wanted: str) -> str:
    signed = view.constant(scale.input[0])
    assert signed is not None
    zero = view.constant(scale.input[2]) if len(scale.input) > 2 and scale.input[2] else numpy.zeros((), numpy.int8)
    assert zero is not None
    values = view.add_constant(f"{wanted}_q", (signed.astype(numpy.int16) + _SHIFT).astype(numpy.uint8))
    point = view.add_constant(f"{wanted}_zero", (zero.astype(numpy.int16) + _SHIFT).astype(numpy.uint8))
    written = {"axis": attribute(scale, "axis")} if attribute(scale, "axis") is not None else {}
    return view.add_node("DequantizeLinear", [values, scale.input[1], point], wanted, domain=scale.domain, **written)


REWRITE = Rewrite(
    name=NAME,
    title="A quantized LayerNormalization has an unsigned scale",
    pattern="LayerNormalization (or another normalisation) of unsigned quantized activations with an int8 scale",
    why="The compiler refuses int8 beside uint8 here. Integers and zero point raised by 128 as uint8 are the "
    "same numbers.",
    default=True,
    apply=_apply,
)
