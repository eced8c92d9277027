"""Attributes of operators that the compiler refuses, said with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.reduction import axes_arguments, axes_of
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "plain-forms"
_SUM_BY_INPUT = 13
_TRAINING_MODE = 14
# exp of it is 0 in float32 for every score, and fp16 has it: as in softmax-mask.
_MASKED = -10000.0


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes(*_FORMS):
        if view.is_quantized(node) or not view.is_float(node.input[0]):
            continue
        what = _FORMS[node.op_type](view, node)
        if what is not None:
            changes.append(applied(NAME, node, what))
    return changes


def _sum(view: GraphView, source: str, axes: tuple[int, ...], keep: int, wanted: str) -> str:
    if view.opset() < _SUM_BY_INPUT:
        return view.add_node("ReduceSum", [source], wanted, axes=list(axes), keepdims=keep)
    along = view.add_constant(f"{wanted}_axes", numpy.array(axes, numpy.int64))
    return view.add_node("ReduceSum", [source, along], wanted, keepdims=keep)


def _reduce(view: GraphView, node: NodeProto) -> str | None:
    """ReduceSumSquare, ReduceL1 and ReduceLogSum are a ReduceSum with something before or behind it."""
    axes, made = axes_of(view, node), str(node.output[0])
    if not axes:
        return None
    source = str(node.input[0])
    if node.op_type == "ReduceSumSquare":
        source = view.add_node("Mul", [source, source], f"{made}_squares")
    elif node.op_type == "ReduceL1":
        source = view.add_node("Abs", [source], f"{made}_magnitudes")
    total = _sum(view, source, axes, int(attribute(node, "keepdims", 1)), f"{made}_total")
    view.replace(node, "Log" if node.op_type == "ReduceLogSum" else "Identity", [total])
    return "became ReduceSum"


def _lp_normalization(view: GraphView, node: NodeProto) -> str | None:
    """p = 1: x over the sum of its magnitudes, which is 0 for x = 0 only, and then the result is 0."""
    shape, made = view.shape(node.input[0]), str(node.output[0])
    if shape is None or attribute(node, "p", 2) != 1:
        return None
    magnitudes = view.add_node("Abs", [node.input[0]], f"{made}_magnitudes")
    total = _sum(view, magnitudes, (int(attribute(node, "axis", -1)) % len(shape),), 1, f"{made}_total")
    zero = view.add_scalar_like(f"{made}_zero", 0.0, node.input[0])
    empty = view.add_node("Equal", [total, zero], f"{made}_empty")
    one = view.add_node("Cast", [empty], f"{made}_one", to=view.dtype(node.input[0]))
    view.replace(node, "Div", [node.input[0], view.add_node("Add", [total, one], f"{made}_divisor")])
    return "x over the sum of its magnitudes"


def _gemm(view: GraphView, node: NodeProto) -> str | None:
    """alpha goes into B (or A), beta into C."""
    alpha, beta = (float(attribute(node, name, 1.0)) for name in ("alpha", "beta"))
    has_c = len(node.input) > 2 and bool(node.input[2])
    if alpha == 1.0 and (beta == 1.0 or not has_c):
        return None
    inputs = [str(name) for name in node.input]
    if alpha != 1.0:
        place = 1 if view.constant(inputs[1]) is not None else 0
        inputs[place] = _scaled(view, inputs[place], alpha)
    if has_c and beta != 1.0:
        inputs[2] = _scaled(view, inputs[2], beta)
    kept = {name: attribute(node, name, 0) for name in ("transA", "transB")}
    view.replace(node, "Gemm", inputs, **kept)
    return f"alpha {alpha:g} and beta {beta:g} are in its operands"


def _scaled(view: GraphView, name: str, factor: float) -> str:
    array = view.constant(name)
    if array is not None:
        return view.add_constant(f"{name}_scaled", (array.astype(numpy.float64) * factor).astype(array.dtype))
    return view.add_node("Mul", [name, view.add_scalar_like(f"{name}_factor", factor, name)], f"{name}_scaled")


def _batch_norm(view: GraphView, node: NodeProto) -> str | None:
    """training_mode: the batch's own mean and variance."""
    shape, made = view.shape(node.input[0]), str(node.output[0])
    if view.opset() < _TRAINING_MODE or not attribute(node, "training_mode", 0) or shape is None or len(shape) < 2:
        return None
    x, scale, bias, old_mean, old_variance = (str(name) for name in node.input)
    axes = tuple(axis for axis in range(len(shape)) if axis != 1)
    further, attributes = axes_arguments(view, axes)
    mean = view.add_node("ReduceMean", [x, *further], f"{made}_mean", keepdims=1, **attributes)
    centred = view.add_node("Sub", [x, mean], f"{made}_centred")
    squares = view.add_node("Mul", [centred, centred], f"{made}_squares")
    variance = view.add_node("ReduceMean", [squares, *further], f"{made}_variance", keepdims=1, **attributes)
    epsilon = view.add_scalar_like(f"{made}_epsilon", attribute(node, "epsilon", 1e-5), x)
    root = view.add_node("Sqrt", [view.add_node("Add", [variance, epsilon], f"{made}_floor")], f"{made}_root")
    normed = view.add_node("Div", [centred, root], f"{made}_normed")
    along = [1, shape[1], *[1] * (len(shape) - 2)]
    weighted = view.add_node("Mul", [normed, reshaped(view, scale, along, f"{made}_scale")], f"{made}_weighted")
    outputs, name = list(node.output), str(node.name)
    view.remove(node)
    view.put("Add", [weighted, reshaped(view, bias, along, f"{made}_bias")], [made], name)
    momentum = float(attribute(node, "momentum", 0.9))
    for output, old, new in zip(outputs[1:], (old_mean, old_variance), (mean, variance), strict=False):
        if output:
            flat = reshaped(view, new, [shape[1]], f"{output}_new")
            kept = view.add_node("Mul", [old, view.add_scalar_like("momentum", momentum, x)], f"{output}_kept")
            part = view.add_node("Mul", [flat, view.add_scalar_like("rest", 1.0 - momentum, x)], f"{output}_part")
            view.put("Add", [kept, part], [output], f"{name}_{output}")
    return "the batch's own mean and variance are written out"


def _attention(view: GraphView, node: NodeProto) -> str | None:
    """A boolean mask becomes numbers to add."""
    mask = str(node.input[3]) if len(node.input) > 3 else ""
    if not mask or view.dtype(mask) != TensorProto.BOOL:
        return None
    array, dtype = view.constant(mask), tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
    if array is not None:
        added = view.add_constant(f"{mask}_added", numpy.where(array, 0.0, _MASKED).astype(dtype))
    else:
        ends = [view.add_scalar_like(f"{mask}_{word}", value, node.input[0])
                for word, value in (("kept", 0.0), ("masked", _MASKED))]  # fmt: skip
        added = view.add_node("Where", [mask, *ends], f"{mask}_added")
    view.set_input(node, 3, added)
    return f"its boolean mask is 0 and {_MASKED:g}, added"


_FORMS: Mapping[str, Callable[[GraphView, NodeProto], str | None]] = {
    "Attention": _attention,
    "BatchNormalization": _batch_norm,
    "Gemm": _gemm,
    "LpNormalization": _lp_normalization,
    "ReduceL1": _reduce,
    "ReduceLogSum": _reduce,
    "ReduceSumSquare": _reduce,
}

REWRITE = Rewrite(
    name=NAME,
    title="Forms of operators that the compiler has not are said with others",
    pattern="ReduceSumSquare, ReduceL1, ReduceLogSum; LpNormalization with p = 1; Gemm with alpha or beta; "
    "BatchNormalization in training mode; Attention with a boolean mask",
    why="The compiler refuses them, and has other operators that compute the same. (A row that a boolean mask masks "
    "whole has no meaning; see softmax-mask.)",
    default=True,
    apply=_apply,
)
