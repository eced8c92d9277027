"""Operators that HTP has for four dimensions and the compiler refuses for five."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy
import onnx
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "five-dimensions"
_RANK = 5
# Measured with QAIRT 2.51 on SM8650; what is not here (Relu, Sigmoid, Exp, Add, Mul, Softmax, ReduceMean …) is right.
_BY_ELEMENT = (
    *("Celu", "Ceil", "Cos", "Elu", "Floor", "HardSigmoid", "HardSwish", "Log", "Max", "Min", "Neg", "Round"),
    *("Selu", "Sign", "Sin", "Sqrt", "Tanh"),
)
_REDUCTIONS = ("ReduceL2", "ReduceMax", "ReduceMin")
_ALONG_AN_AXIS = ("CumSum", "LayerNormalization")
# Pairs of axes that may become one, the best first: height and depth of [n, c, d, h, w].
_PAIRS = (2, 3, 0, 1)


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes(*_BY_ELEMENT, *_REDUCTIONS, *_ALONG_AN_AXIS):
        shape = view.shape(node.input[0]) if node.op_type not in ("Max", "Min") else view.shape(node.output[0])
        if shape is None or len(shape) != _RANK or view.is_quantized(node) or len(node.output) != 1:
            continue
        if view.shape(node.output[0]) is None or _is_right(view, node):
            continue
        if node.op_type in _BY_ELEMENT:
            pair = _pair(view, node, shape)
            done = pair is not None and _by_element(view, node, shape, pair)
        else:
            done = _along_axes(view, node, shape)
        changes.append(applied(NAME, node, "in four") if done else refused(NAME, node, "no two dimensions are alike"))
    return changes


def _is_right(view: GraphView, node: NodeProto) -> bool:
    """The largest or smallest along the last axis alone is taken as it is."""
    return node.op_type in ("ReduceMax", "ReduceMin") and _axes(view, node) in ([-1], [_RANK - 1])


def _pair(view: GraphView, node: NodeProto, shape: Sequence[int]) -> int | None:
    """The first of two axes that every operand has whole, or as two of size 1."""
    operands = [(1,) * (_RANK - len(own)) + own for own in (view.shape(name) or () for name in node.input)]
    for first in _PAIRS:
        whole, single = tuple(shape[first : first + 2]), (1, 1)
        if all(own[first : first + 2] in (whole, single) for own in operands):
            return first
    return None


def _by_element(view: GraphView, node: NodeProto, shape: Sequence[int], pair: int) -> bool:
    if any(view.shape(name) is None for name in node.input):
        return False
    inputs = []
    for index, name in enumerate(node.input):
        own = view.shape(name) or ()
        full = (1,) * (_RANK - len(own)) + own
        scalar = prod(own) == 1 and prod(shape) > 1
        wanted = f"{node.output[0]}_in_four_{index}"
        inputs.append(str(name) if scalar and len(own) < _RANK else reshaped(view, name, _joined(full, pair), wanted))
    _put(view, node, inputs, {})
    return True


def _along_axes(view: GraphView, node: NodeProto, shape: Sequence[int]) -> bool:
    written = _axes(view, node)
    axes = None if written is None else {axis % _RANK for axis in written}
    pairs = [first for first in _PAIRS if axes is not None and _fit(node, axes, first)]
    if axes is None or not pairs:
        return False
    pair = pairs[0]
    moved = sorted({axis - (axis > pair) for axis in axes})
    inputs = [reshaped(view, node.input[0], _joined(shape, pair), f"{node.output[0]}_in_four"), *node.input[1:]]
    if len(node.input) > 1 and node.op_type != "LayerNormalization":
        array = numpy.array(moved[0] if node.op_type == "CumSum" else moved, numpy.int64)
        inputs[1] = view.add_constant(f"{node.output[0]}_axes", array)
        _put(view, node, inputs, {})
    else:
        _put(view, node, inputs, {"axes": moved} if node.op_type in _REDUCTIONS else {"axis": moved[0]})
    return True


def _fit(node: NodeProto, axes: set[int], first: int) -> bool:
    """Whether both axes are reduced or neither; of one that an operator goes along, neither may be it."""
    if node.op_type in _REDUCTIONS:
        return (first in axes) == (first + 1 in axes)
    return first not in axes and first + 1 not in axes


def _axes(view: GraphView, node: NodeProto) -> list[int] | None:
    if node.op_type == "LayerNormalization":
        axis = int(attribute(node, "axis", -1)) % _RANK
        return [axis] if axis == _RANK - 1 else None
    if len(node.input) > 1:
        given = view.constant(node.input[1])
        return None if given is None or not given.size else [int(axis) for axis in given.reshape(-1)]
    axes = attribute(node, "axes")
    return None if axes is None else [int(axis) for axis in axes]


def _joined(shape: Sequence[int], first: int) -> list[int]:
    return [*shape[:first], shape[first] * shape[first + 1], *shape[first + 2 :]]


def _put(view: GraphView, node: NodeProto, inputs: list[str], changed: dict[str, object]) -> None:
    """The node on four dimensions, and its result in the shape that it had."""
    made, shape = str(node.output[0]), view.shape(node.output[0]) or ()
    written = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} | changed
    name = view.add_node(node.op_type, inputs, f"{made}_of_four", **written)
    target = view.add_constant(f"{made}_shape", numpy.array(shape, numpy.int64))
    view.replace(node, "Reshape", [name, target])


REWRITE = Rewrite(
    name=NAME,
    title="Operators of five dimensions get four",
    pattern=f"{', '.join(_BY_ELEMENT)}, {', '.join(_REDUCTIONS)}, {', '.join(_ALONG_AN_AXIS)} of five dimensions",
    why="HTP has these for up to four dimensions, and the compiler refuses them for five (networks on video and "
    "volumes: Conv in three dimensions with Tanh, ELU, Mish or HardSwish). Two neighbouring dimensions that the "
    "operator treats alike become one, and are two again behind it; no element moves.",
    default=True,
    apply=_apply,
)
