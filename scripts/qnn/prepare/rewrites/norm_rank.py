"""Normalizations of tensors of another rank than the compiler's, and with parameters it does not take, in its forms."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "norm-rank"
_PLANES = 4
_EPSILON = 1e-5


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("BatchNormalization", "InstanceNormalization", "GroupNormalization"):
        shape = view.shape(node.input[0])
        if shape is None or view.is_quantized(node) or not view.is_float(node.input[0]):
            continue
        if node.op_type == "GroupNormalization":
            scales = view.shape(node.input[1])
            if len(shape) != _PLANES or scales != (shape[1],):
                _group(view, node, shape, per_group=scales == (int(attribute(node, "num_groups")),))
                changes.append(applied(NAME, node, "InstanceNormalization of its groups"))
        elif node.op_type == "BatchNormalization" and not all(view.is_constant(name) for name in node.input[1:]):
            if not attribute(node, "training_mode", 0):
                _batch(view, node, shape)
                changes.append(applied(NAME, node, "Sub, Div, Mul and Add with its parameters"))
        elif len(shape) > _PLANES and len(node.output) == 1:
            _flattened(view, node, shape)
            changes.append(applied(NAME, node, f"on {_flat(shape)}"))
    return changes


def _flat(shape: tuple[int, ...]) -> list[int]:
    return [*shape[:2], prod(shape[2:-1]), shape[-1]]


def _flattened(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> None:
    name = str(node.output[0])
    source = reshaped(view, node.input[0], _flat(shape), f"{name}_flat")
    written = {"epsilon": attribute(node, "epsilon", _EPSILON)}
    made = view.add_node(node.op_type, [source, *node.input[1:]], f"{name}_normal", **written)
    view.replace(node, "Reshape", [made, view.add_constant(f"{name}_shape", numpy.array(shape, numpy.int64))])


def _group(view: GraphView, node: NodeProto, shape: tuple[int, ...], *, per_group: bool) -> None:
    """`per_group`: one scale and bias a group, as opset 18 has them; else one a channel."""
    name, groups = str(node.output[0]), int(attribute(node, "num_groups"))
    dtype = tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
    source = reshaped(view, node.input[0], [shape[0], groups, -1], f"{name}_groups")
    neutral = [view.add_constant(f"{name}_{n}", numpy.full(groups, n, dtype)) for n in (1, 0)]
    epsilon = attribute(node, "epsilon", _EPSILON)
    scale, bias = (str(given) for given in node.input[1:])
    if per_group:
        made = view.add_node("InstanceNormalization", [source, scale, bias], f"{name}_normal", epsilon=epsilon)
        view.replace(node, "Reshape", [made, view.add_constant(f"{name}_shape", numpy.array(shape, numpy.int64))])
        return
    made = view.add_node("InstanceNormalization", [source, *neutral], f"{name}_normal", epsilon=epsilon)
    made = reshaped(view, made, shape, f"{name}_shaped")
    made = view.add_node("Mul", [made, _column(view, scale, shape, f"{name}_scale")], f"{name}_scaled")
    view.replace(node, "Add", [made, _column(view, bias, shape, f"{name}_bias")])


def _batch(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> None:
    name = str(node.output[0])
    scale, bias, mean, variance = (
        _column(view, given, shape, f"{name}_{place}") for place, given in enumerate(node.input[1:])
    )
    epsilon = view.add_scalar_like(f"{name}_epsilon", attribute(node, "epsilon", _EPSILON), node.input[0])
    root = view.add_node("Sqrt", [view.add_node("Add", [variance, epsilon], f"{name}_wide")], f"{name}_root")
    centred = view.add_node("Sub", [node.input[0], mean], f"{name}_centred")
    factor = view.add_node("Div", [scale, root], f"{name}_factor")
    view.replace(node, "Add", [view.add_node("Mul", [centred, factor], f"{name}_scaled"), bias])


def _column(view: GraphView, name: str, shape: tuple[int, ...], wanted: str) -> str:
    return reshaped(view, name, [-1, *([1] * (len(shape) - 2))], wanted)


REWRITE = Rewrite(
    name=NAME,
    title="Normalizations take the form of four dimensions",
    pattern="GroupNormalization of other than four dimensions or with one scale a group (opset 18); BatchNormalization "
    "and InstanceNormalization of five dimensions; BatchNormalization with parameters known at run time",
    why="The compiler refuses these, and computes GroupNormalization of three dimensions wrongly (cosine 0.9994). The "
    "means are taken over the same elements in a Reshape of the tensor, and a normalization with given parameters is "
    "arithmetic on them.",
    default=True,
    apply=_apply,
)
