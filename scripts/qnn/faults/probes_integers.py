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


def _uint8_image() -> ProbeGraph:
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Abs", ["c"], ["a"]),
        node("Round", ["a"], ["r"]),
        node("Cast", ["r"], ["y"], to=_UINT8),
    ]
    identity = numpy.eye(3, dtype=numpy.float32).reshape(3, 3, 1, 1)
    image = numpy.arange(192, dtype=numpy.float32).reshape(1, 3, 8, 8)
    return graph(nodes, {"x": image}, {"w": identity}, {"y": _UINT8})


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
    "uint8-image": _uint8_image,
    "integer-neg": lambda: _of_int32("Neg"),
    "integer-sign": lambda: _of_int32("Sign"),
}
