"""LayerNormalization over several axes as one over a merged last axis."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import requantized, reshaped
from qnn.prepare.rewrites.view import GraphView, attribute
from qnn.prepare.rewrites.weights_by import changed_weights

NAME = "layer-norm-last-axis"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("LayerNormalization"):
        shape = view.shape(node.input[0])
        if shape is None:
            continue
        axis = int(attribute(node, "axis", -1)) % len(shape)
        if axis == len(shape) - 1:
            continue
        if any(name and (view.users(name) or view.is_output(name)) for name in node.output[1:]):
            changes.append(refused(NAME, node, "its mean or deviation is used too"))
            continue
        merged, name = prod(shape[axis:]), str(node.output[0])
        before = view.maker(node.input[0], "DequantizeLinear")
        behind = [user for user in view.users(node.output[0]) if user.op_type == "QuantizeLinear"]
        source = reshaped(view, str(node.input[0]), [*shape[:axis], merged], f"{name}_merged")
        inputs = [requantized(view, source, before)]
        for index, given in enumerate(node.input[1:]):
            inputs.append(_flat(view, str(given), shape[axis:], f"{name}_given_{index}") if given else "")
        normal = view.add_node(
            "LayerNormalization", inputs, f"{name}_normal", axis=-1, epsilon=float(attribute(node, "epsilon", 1e-5))
        )
        normal = requantized(view, normal, behind[0] if behind else None)
        view.remove(node)
        sizes = view.add_constant(f"{name}_shape", numpy.array(shape, numpy.int64))
        view.put("Reshape", [normal, sizes], [name], str(node.name))
        changes.append(applied(NAME, node, f"over one axis of {merged} in place of {list(shape[axis:])}"))
    return changes


def _flat(view: GraphView, name: str, shape: tuple[int, ...], wanted: str) -> str:
    """A scale or bias of the normalised axes, in full, as one axis."""
    dequantize = view.maker(name, "DequantizeLinear")
    scales = () if dequantize is None else view.shape(dequantize.input[1])
    if scales is not None and prod(scales) == 1:
        full = changed_weights(view, name, f"{wanted}_flat", lambda own: numpy.broadcast_to(own, shape).reshape(-1))
        if full is not None:
            return full
    if view.shape(name) != shape:
        sizes = view.add_constant(f"{wanted}_sizes", numpy.array(shape, numpy.int64))
        name = view.add_node("Expand", [name, sizes], f"{wanted}_full")
    return reshaped(view, name, [prod(shape)], f"{wanted}_flat")


REWRITE = Rewrite(
    name=NAME,
    title="LayerNormalization over several axes becomes one over the last",
    pattern="LayerNormalization with an axis before the last",
    why="The compiler normalises over the last axis only. A Reshape merges the normalised axes into one and "
    "another one takes them apart; no number changes.",
    default=True,
    apply=_apply,
)
