"""LpPool and GlobalLpPool as powers, sums over windows and a root."""

from __future__ import annotations

from typing import Any

import numpy
from onnx import ModelProto, NodeProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.pool_windows import windows
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "lp-pool-written-out"
_EUCLID = 2
_KNOWN = (1, _EUCLID)
_PLANES = 4
# The opsets from which ReduceL2 and ReduceSum take their axes as an input.
_NORM_BY_INPUT, _SUM_BY_INPUT = 18, 13


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("LpPool", "GlobalLpPool"):
        shape, order = view.shape(node.input[0]), int(attribute(node, "p", _EUCLID))
        if shape is None or not view.is_float(node.input[0]) or view.is_quantized(node):
            continue
        if node.op_type == "GlobalLpPool":
            _global(view, node, shape, order)
            changes.append(applied(NAME, node, f"the norm of order {order} over all positions"))
            continue
        found = windows(view, node)
        if found is None:
            continue
        plain = not found.is_padded and set(found.dilations) == {1} and not attribute(node, "ceil_mode", 0)
        if plain and order in _KNOWN and len(found.sizes) <= _EUCLID:
            continue
        dtype = tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
        name, kernel = str(node.output[0]), numpy.ones((shape[1], 1, *found.kernel), dtype)
        power = _power(view, node, order, node.input[0])
        attributes: dict[str, Any] = {
            "group": shape[1],
            "kernel_shape": list(found.kernel),
            "strides": list(found.strides),
        }
        attributes |= {"dilations": list(found.dilations), "pads": [*found.begins, *found.ends]}
        total = view.add_node("Conv", [power, view.add_constant(f"{name}_ones", kernel)], f"{name}_sum", **attributes)
        _root(view, node, total, order, (*shape[:2], *found.counts))
        changes.append(applied(NAME, node, f"powers of {order}, a depthwise Conv of ones, and a root"))
    return changes


def _power(view: GraphView, node: NodeProto, order: int, source: str) -> str:
    name = str(node.output[0])
    if order == _EUCLID:
        return view.add_node("Mul", [source, source], f"{name}_squares")
    size = view.add_node("Abs", [source], f"{name}_abs")
    if order == 1:
        return size
    return view.add_node("Pow", [size, view.add_scalar_like(f"{name}_p", order, node.input[0])], f"{name}_powers")


def _root(view: GraphView, node: NodeProto, total: str, order: int, shape: tuple[int, ...]) -> None:
    """The root of a tensor of this shape; the compiler takes none of five dimensions."""
    name = str(node.output[0])
    if order == 1:
        view.replace(node, "Identity", [total])
        return
    root = "Sqrt" if order == _EUCLID else "Pow"
    exponent = [] if order == _EUCLID else [view.add_scalar_like(f"{name}_q", 1.0 / order, node.input[0])]
    if len(shape) <= _PLANES:
        view.replace(node, root, [total, *exponent])
        return
    flat = view.add_node(root, [reshaped(view, total, [*shape[:2], -1], f"{name}_flat"), *exponent], f"{name}_root")
    view.replace(node, "Reshape", [flat, view.add_constant(f"{name}_shape", numpy.array(shape, numpy.int64))])


def _global(view: GraphView, node: NodeProto, shape: tuple[int, ...], order: int) -> None:
    """The norm over all positions. ReduceL2 is left to reduce-l2-range."""
    name = str(node.output[0])
    flat = reshaped(view, node.input[0], [*shape[:2], -1], f"{name}_flat")
    operator, since = ("ReduceL2", _NORM_BY_INPUT) if order == _EUCLID else ("ReduceSum", _SUM_BY_INPUT)
    inputs = [flat if order == _EUCLID else _power(view, node, order, flat)]
    written: dict[str, Any] = {"keepdims": 1}
    if view.opset() >= since:
        inputs.append(view.add_constant(f"{name}_axes", numpy.array([2], numpy.int64)))
    else:
        written["axes"] = [2]
    total = view.add_node(operator, inputs, f"{name}_total", **written)
    sizes = view.add_constant(f"{name}_shape", numpy.array([*shape[:2], *([1] * (len(shape) - 2))], numpy.int64))
    if order not in _KNOWN:
        total = view.add_node(
            "Pow", [total, view.add_scalar_like(f"{name}_q", 1.0 / order, node.input[0])], f"{name}_root"
        )
    view.replace(node, "Reshape", [total, sizes])


REWRITE = Rewrite(
    name=NAME,
    title="LpPool is written out",
    pattern="LpPool with padding, ceil_mode, dilations, over three axes, or of an order above 2; GlobalLpPool",
    why="The compiler shifts LpPool whose pads are uneven (cosine 0.98), and refuses the others. By its definition it "
    "is the root of the sum of powers in each window.",
    default=True,
    apply=_apply,
)
