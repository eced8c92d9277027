"""A tiny graph for each known fault of integers and booleans. Names are those of faults.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy
from onnx import NodeProto, TensorProto

from qnn.faults.probes import Array, ProbeGraph, graph, node, noise

_UINT8, _INT32, _INT64, _BOOL = TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL


def _wide(*behind: NodeProto, **constants: int) -> ProbeGraph:
    """int32 made int64, and nodes from i to y on it."""
    given = {"ids": numpy.array([[5, 7, 3, 4000]], numpy.int32)}
    wide = {name: numpy.array(number, numpy.int64) for name, number in constants.items()}
    return graph([node("Cast", ["ids"], ["i"], to=_INT64), *behind], given, wide, {"y": _INT64})


def _bytes(*behind: NodeProto, **constants: int) -> ProbeGraph:
    """Nodes from x uint8[1, 3, 8, 8] to t uint8, which is made float."""
    image = numpy.random.default_rng(0).integers(0, 256, (1, 3, 8, 8)).astype(numpy.uint8)
    nodes = [*behind, node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)]
    return graph(nodes, {"x": image}, {name: numpy.uint8(number) for name, number in constants.items()})


_AT = numpy.array([0, -1, 3, -8, -3], numpy.int32)


def _gather(numbers: Array, dtype: int) -> ProbeGraph:
    return graph([node("Gather", ["x", "at"], ["y"], axis=1)], {"x": numbers, "at": _AT}, outputs={"y": dtype})


def _elements(op_type: str) -> ProbeGraph:
    feeds = {"x": noise(3, 8), "at": numpy.stack([_AT] * 3).astype(numpy.int64)}
    if op_type == "ScatterElements":
        feeds["at"] = feeds["at"][:, :2]
        feeds["new"] = noise(3, 2, seed=1)
    return graph([node(op_type, list(feeds), ["y"], axis=1)], feeds)


def _gather_layer() -> ProbeGraph:
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Gather", ["c", "at"], ["y"], axis=2)]
    return graph(nodes, {"x": noise(1, 8, 8, 6), "at": _AT}, {"w": noise(8, 8, 1, 1)})


def _behind_conv(dtype: int, *behind: NodeProto) -> ProbeGraph:
    """Nodes from c [1, 3, 8, 8], whole numbers from 0 to 191 in no order, to y of a type."""
    identity = numpy.eye(3, dtype=numpy.float32).reshape(3, 3, 1, 1)
    image = numpy.random.default_rng(0).permutation(192).astype(numpy.float32).reshape(1, 3, 8, 8)
    return graph([node("Conv", ["x", "w"], ["c"]), *behind], {"x": image}, {"w": identity}, {"y": dtype})


def _scatter_nd() -> ProbeGraph:
    feeds = {"x": noise(6, 4), "at": numpy.array([[0], [-1]]), "new": noise(2, 4, seed=4)}
    return graph([node("ScatterND", list(feeds), ["y"])], feeds)


def _one_hot() -> ProbeGraph:
    constants = {"depth": numpy.array(8), "values": numpy.array([-1, 2.5], numpy.float32)}
    return graph([node("OneHot", ["x", "depth", "values"], ["y"])], {"x": numpy.array([[0, 3, -8, 7]])}, constants)


def _gather_table() -> ProbeGraph:
    feeds = {"at": numpy.array([[0, -1, 5, -20, 19, 3]], numpy.int32)}
    return graph([node("Gather", ["t", "at"], ["y"])], feeds, {"t": noise(20, 8)})


def _of_int32(op_type: str) -> ProbeGraph:
    given = {"x": numpy.array([[5, -7, 0, 70000]], numpy.int32)}
    return graph([node(op_type, ["x"], ["y"])], given, outputs={"y": _INT32})


INTEGER_PROBES: Mapping[str, Callable[[], ProbeGraph]] = {
    "wide-mark": lambda: _wide(
        node("Equal", ["i", "none"], ["masked"]),
        node("Where", ["masked", "far", "i"], ["marked"]),
        node("ReduceMin", ["marked"], ["y"], axes=[1]),
        none=7,
        far=2**63 - 1,
    ),
    "wide-bound": lambda: _wide(node("Min", ["i", "far"], ["y"]), far=2**40),
    "wide-constant-used": lambda: _wide(
        node("Equal", ["i", "none"], ["marked"]), node("Where", ["marked", "far", "i"], ["y"]), none=7, far=2**40 + 5
    ),
    "uint8-clip": lambda: _bytes(node("Clip", ["x", "low", "high"], ["t"]), low=30, high=200),
    "uint8-pool": lambda: _bytes(node("MaxPool", ["x"], ["t"], kernel_shape=[2, 2], strides=[2, 2])),
    "bool-gather": lambda: _gather(numpy.arange(24).reshape(3, 8) % 3 == 0, _BOOL),
    "integer-gather": lambda: _gather(numpy.arange(1, 25, dtype=numpy.int32).reshape(3, 8), _INT32),
    "gather-elements": lambda: _elements("GatherElements"),
    "scatter-elements": lambda: _elements("ScatterElements"),
    "gather-layer": _gather_layer,
    "scatter-nd": _scatter_nd,
    "gather-table": _gather_table,
    "uint8-image": lambda: _behind_conv(
        _UINT8, node("Abs", ["c"], ["a"]), node("Round", ["a"], ["r"]), node("Cast", ["r"], ["y"], to=_UINT8)
    ),
    "int64-image": lambda: _behind_conv(
        _INT64, node("Cast", ["c"], ["n"], to=_INT32), node("Cast", ["n"], ["y"], to=_INT64)
    ),
    "arg-max-keepdims": lambda: _behind_conv(_INT64, node("ArgMax", ["c"], ["y"], axis=1)),
    "arg-max-width": lambda: _behind_conv(_INT64, node("ArgMax", ["c"], ["y"], axis=-1, keepdims=0)),
    "one-hot-negative": _one_hot,
    "cum-sum-reverse": lambda: graph(
        [node("CumSum", ["x", "axis"], ["y"], exclusive=1, reverse=1)], {"x": noise(2, 16)}, {"axis": numpy.array(1)}
    ),
    "reverse-sequence": lambda: graph(
        [node("ReverseSequence", ["x", "lengths"], ["y"], batch_axis=1, time_axis=0)],
        {"x": noise(6, 3, 4)},
        {"lengths": numpy.array([6, 3, 1])},
    ),
    "eye-like": lambda: graph([node("EyeLike", ["x"], ["e"], k=1), node("Add", ["x", "e"], ["y"])], {"x": noise(4, 6)}),
    "integer-neg": lambda: _of_int32("Neg"),
    "integer-sign": lambda: _of_int32("Sign"),
}
