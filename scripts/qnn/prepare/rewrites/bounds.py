"""What values a tensor can have, as far as the graph alone tells: an interval from constants and operators.

Used to leave a rewrite out where it is not needed (an Exp whose argument is never far below zero) and to refuse one
that would not be exact (integers that do not fit).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy
from onnx import NodeProto, TensorProto

from qnn.prepare.rewrites.view import GraphView, attribute

Interval: TypeAlias = tuple[float, float]

ANY: Interval = (-math.inf, math.inf)
_INT32: Interval = (-(2.0**31), 2.0**31 - 1)
_DEPTH = 24
_INTEGERS = {
    TensorProto.BOOL: (0.0, 1.0),
    TensorProto.INT8: (-128.0, 127.0),
    TensorProto.UINT8: (0.0, 255.0),
    TensorProto.INT16: (-32768.0, 32767.0),
    TensorProto.UINT16: (0.0, 65535.0),
    TensorProto.INT32: _INT32,
}
# Operators whose result lies in a fixed interval, whatever goes in.
_FIXED: Mapping[str, Interval] = {
    "Cos": (-1.0, 1.0),
    "Erf": (-1.0, 1.0),
    "Exp": (0.0, math.inf),
    "HardSigmoid": (0.0, 1.0),
    "LogSoftmax": (-math.inf, 0.0),
    "ReduceL1": (0.0, math.inf),
    "ReduceL2": (0.0, math.inf),
    "ReduceSumSquare": (0.0, math.inf),
    "Relu": (0.0, math.inf),
    "Sigmoid": (0.0, 1.0),
    "Sin": (-1.0, 1.0),
    "Softmax": (0.0, 1.0),
    "Softplus": (0.0, math.inf),
    "Softsign": (-1.0, 1.0),
    "Sqrt": (0.0, math.inf),
    "Tanh": (-1.0, 1.0),
}
# Operators whose result has no value that their first input does not have.
_PASSING = frozenset(
    {
        "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "GlobalMaxPool",
        "Identity", "MaxPool", "ReduceMax", "ReduceMean", "ReduceMin", "Reshape", "Slice", "SpaceToDepth", "Split",
        "Squeeze", "Tile", "TopK", "Transpose", "Unsqueeze", "GlobalAveragePool",
    }
)  # fmt: skip

_WRAPPING = frozenset({"Abs", "Add", "Cast", "CumSum", "Div", "Mul", "Neg", "ReduceSum", "Sub"})


def interval(view: GraphView, name: str) -> Interval:
    """Bounds of every value that a tensor of the graph can have; infinite where nothing is known."""
    return _Search(view).bounds(name, _DEPTH)


class _Search:
    """One walk up the graph, each tensor once."""

    def __init__(self, view: GraphView) -> None:
        self.view = view
        self._known: dict[str, Interval] = {}

    def bounds(self, name: str, depth: int) -> Interval:
        if name not in self._known:
            self._known[name] = self._bounds(name, depth)
        return self._known[name]

    def inputs(self, node: NodeProto, depth: int) -> list[Interval]:
        return [self.bounds(name, depth) for name in node.input if name]

    def _bounds(self, name: str, depth: int) -> Interval:
        array = self.view.constant(name)
        if array is not None:
            return _of_constant(array)
        node = self.view.maker(name)
        known = _INTEGERS.get(self.view.dtype(name), ANY)
        if node is None or depth == 0 or node.domain not in ("", "ai.onnx"):
            return known
        if name != node.output[0] and node.op_type != "Split":  # positions, or nothing that is known
            found = _arg(self, node, depth - 1) if node.op_type == "TopK" else ANY
        elif node.op_type in _FIXED:
            found = _FIXED[node.op_type]
        elif node.op_type in _PASSING:
            found = self.bounds(node.input[0], depth - 1)
        elif node.op_type in _COMPUTED:
            found = _COMPUTED[node.op_type](self, node, depth - 1)
        else:
            found = ANY
        if (found[0] < known[0] or found[1] > known[1]) and self._wraps(node):
            return known
        return max(found[0], known[0]), min(found[1], known[1])

    def _wraps(self, node: NodeProto) -> bool:
        """Whether an integer beyond its type comes out as another one; ONNX says nothing of a Cast from float."""
        return node.op_type in _WRAPPING and not (node.op_type == "Cast" and self.view.is_float(node.input[0]))


def _of_constant(array: numpy.ndarray) -> Interval:
    if array.size == 0 or array.dtype.kind not in "fiub":
        return ANY
    low, high = float(array.min()), float(array.max())
    return ANY if math.isnan(low) or math.isnan(high) else (low, high)


def _add(search: _Search, node: NodeProto, depth: int) -> Interval:
    (a, b), (c, d) = search.inputs(node, depth)
    return a + c, b + d


def _sub(search: _Search, node: NodeProto, depth: int) -> Interval:
    (a, b), (c, d) = search.inputs(node, depth)
    return a - d, b - c


def _mul(search: _Search, node: NodeProto, depth: int) -> Interval:
    if node.input[0] == node.input[1]:
        low, high = search.bounds(node.input[0], depth)
        least = 0.0 if low <= 0 <= high else min(low * low, high * high)
        return least, max(low * low, high * high)
    (a, b), (c, d) = search.inputs(node, depth)
    products = [0.0 if 0.0 in (x, y) else x * y for x in (a, b) for y in (c, d)]  # 0 · ∞ is 0 here: a bound, no limit
    return min(products), max(products)


def _div(search: _Search, node: NodeProto, depth: int) -> Interval:
    (a, b), (c, d) = search.inputs(node, depth)
    if c <= 0 or math.isinf(a) or math.isinf(b):
        return (0.0 if a >= 0 and c > 0 else -math.inf), math.inf
    quotients = [x / y for x in (a, b) for y in (c, d)]
    return min(quotients), max(quotients)


def _neg(search: _Search, node: NodeProto, depth: int) -> Interval:
    low, high = search.bounds(node.input[0], depth)
    return -high, -low


def _max(search: _Search, node: NodeProto, depth: int) -> Interval:
    given = search.inputs(node, depth)
    return max(low for low, _ in given), max(high for _, high in given)


def _min(search: _Search, node: NodeProto, depth: int) -> Interval:
    given = search.inputs(node, depth)
    return min(low for low, _ in given), min(high for _, high in given)


def _union(search: _Search, node: NodeProto, depth: int) -> Interval:
    given = search.inputs(node, depth)
    return min(low for low, _ in given), max(high for _, high in given)


def _where(search: _Search, node: NodeProto, depth: int) -> Interval:
    given = [search.bounds(name, depth) for name in node.input[1:]]
    return min(low for low, _ in given), max(high for _, high in given)


def _clip(search: _Search, node: NodeProto, depth: int) -> Interval:
    low, high = search.bounds(node.input[0], depth)
    least, most = attribute(node, "min"), attribute(node, "max")
    if len(node.input) > 1 and node.input[1]:
        least = search.view.scalar(node.input[1])
    if len(node.input) > 2 and node.input[2]:
        most = search.view.scalar(node.input[2])
    low, high = (low if least is None else max(low, least)), (high if most is None else min(high, most))
    return min(low, high), high


def _cast(search: _Search, node: NodeProto, depth: int) -> Interval:
    low, high = search.bounds(node.input[0], depth)
    if attribute(node, "to") == TensorProto.BOOL:
        return 0.0, 1.0
    return low, high


def _arg(search: _Search, node: NodeProto, depth: int) -> Interval:  # noqa: ARG001 - one form for all
    shape = search.view.shape(node.input[0])
    return ANY if shape is None else (0.0, float(max(shape, default=1)))


def _abs(search: _Search, node: NodeProto, depth: int) -> Interval:
    low, high = search.bounds(node.input[0], depth)
    return max(0.0, low, -high), max(-low, high)


def _reduce_sum(search: _Search, node: NodeProto, depth: int) -> Interval:
    given, made = search.view.shape(node.input[0]), search.view.shape(node.output[0])
    if given is None or made is None or 0 in {*given, *made}:
        return ANY
    low, high = search.bounds(node.input[0], depth)
    terms = math.prod(given) // math.prod(made)
    return terms * low, terms * high


def _cum_sum(search: _Search, node: NodeProto, depth: int) -> Interval:
    shape = search.view.shape(node.input[0])
    if shape is None or 0 in shape:
        return ANY
    low, high = search.bounds(node.input[0], depth)
    terms = max(shape)
    return min(0.0, terms * low), max(0.0, terms * high)


def _mod(search: _Search, node: NodeProto, depth: int) -> Interval:
    (a, _), (c, d) = search.inputs(node, depth)
    size = max(abs(c), abs(d))
    kept = a >= 0 if attribute(node, "fmod", 0) else c > 0  # the sign is the dividend's, or the divisor's
    return (0.0 if kept else -size), size


def _scatter(search: _Search, node: NodeProto, depth: int) -> Interval:
    if attribute(node, "reduction", b"none") != b"none":
        return ANY
    (a, b), (c, d) = (search.bounds(node.input[index], depth) for index in (0, 2))
    return min(a, c), max(b, d)


def _one_hot(search: _Search, node: NodeProto, depth: int) -> Interval:
    return search.bounds(node.input[2], depth)


_COMPUTED: Mapping[str, Callable[[_Search, NodeProto, int], Interval]] = {
    "Abs": _abs,
    "Add": _add,
    "ArgMax": _arg,
    "ArgMin": _arg,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _union,
    "CumSum": _cum_sum,
    "Div": _div,
    "Max": _max,
    "Min": _min,
    "Mod": _mod,
    "Mul": _mul,
    "Neg": _neg,
    "OneHot": _one_hot,
    "ReduceSum": _reduce_sum,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "Sub": _sub,
    "Where": _where,
}
