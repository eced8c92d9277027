"""Reductions that reduce nothing, and products along an axis."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.reduction import axes_of
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "reduce-plain"
# What a reduction over no axis does to each element; the others do nothing.
_ELEMENTWISE = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}
_REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
# Each halving of an axis is two Slices and a Mul.
_LONGEST = 4096
_SLICE_INPUTS = 10


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes(*_REDUCTIONS):
        axes, shape = axes_of(view, node), view.shape(node.input[0])
        if axes is None or shape is None:
            continue
        if not axes:
            _elementwise(view, node)
            changes.append(applied(NAME, node, "without axes it works on each element"))
        elif node.op_type == "ReduceProd":
            if view.is_quantized(node) or max(shape[axis] for axis in axes) > _LONGEST or view.opset() < _SLICE_INPUTS:
                changes.append(refused(NAME, node, "it is quantized, too long or of an opset before 10"))
                continue
            _product(view, node, axes, shape)
            changes.append(applied(NAME, node, "halves multiplied with each other"))
    return changes


def _elementwise(view: GraphView, node: NodeProto) -> None:
    source = str(node.input[0])
    if node.op_type == "ReduceSumSquare":
        view.replace(node, "Mul", [source, source])
    else:
        view.replace(node, _ELEMENTWISE.get(node.op_type, "Identity"), [source])


def _product(view: GraphView, node: NodeProto, axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    name = str(node.input[0])
    for axis in axes:
        name = _along(view, name, axis, shape[axis], f"{node.output[0]}_axis_{axis}")
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    if not attribute(node, "keepdims", 1):
        kept = [size for axis, size in enumerate(shape) if axis not in axes]
    view.replace(node, "Reshape", [name, view.add_constant(f"{node.output[0]}_shape", numpy.array(kept, numpy.int64))])


def _along(view: GraphView, name: str, axis: int, size: int, wanted: str) -> str:
    while size > 1:
        half = size // 2
        left = _part(view, name, axis, 0, half, f"{wanted}_left_{size}")
        right = _part(view, name, axis, half, 2 * half, f"{wanted}_right_{size}")
        product = view.add_node("Mul", [left, right], f"{wanted}_product_{size}")
        if size % 2:
            last = _part(view, name, axis, size - 1, size, f"{wanted}_last_{size}")
            product = view.add_node("Concat", [product, last], f"{wanted}_joined_{size}", axis=axis)
        name, size = product, half + size % 2
    return name


def _part(view: GraphView, name: str, axis: int, begin: int, end: int, wanted: str) -> str:
    bounds = [
        view.add_constant(f"{wanted}_{word}", numpy.array([value], numpy.int64))
        for word, value in (("begin", begin), ("end", end), ("axis", axis))
    ]
    return view.add_node("Slice", [name, *bounds], wanted)


REWRITE = Rewrite(
    name=NAME,
    title="Reductions over nothing are removed, products are multiplied",
    pattern="a Reduce operator with noop_with_empty_axes and no axes; ReduceProd",
    why="The compiler refuses both. Over no axes a reduction leaves each element (its square, magnitude or "
    "logarithm); a product along an axis is the product of its halves, again and again.",
    default=True,
    apply=_apply,
)
