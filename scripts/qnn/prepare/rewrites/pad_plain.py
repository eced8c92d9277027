"""Pad with a constant in the forms that the compiler refuses, or takes together with the layer behind it."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.pad_by_gather import pads_of
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "pad-plain"
_VALUE, _AXES = 2, 3
_WHOLE = (TensorProto.INT32, TensorProto.INT64)
# What lies at or below this cannot be the largest element of a window in fp16: the compiler may leave it out.
_LOWEST = -65504.0
_LAYERS = ("Conv", "ConvTranspose", "AveragePool", "LpPool")


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Pad"):
        if (attribute(node, "mode") or b"constant") != b"constant":
            continue
        shape = view.shape(node.input[0])
        pads = None if shape is None else pads_of(view, node, len(shape))
        if shape is None or pads is None:
            changes.append(refused(NAME, node, "its pads are computed in the graph"))
            continue
        given = node.input[_VALUE] if len(node.input) > _VALUE else ""
        quantized = view.is_quantized(node)
        value = attribute(node, "value", 0.0) if not given else view.scalar(given)
        if value is None and not quantized:
            _around(view, node, given, shape, pads)
            changes.append(applied(NAME, node, "zeros, and its computed value chosen in their place"))
        elif value is not None and not quantized and _needs_concat(view, node, value):
            _joined(view, node, shape, pads, value)
            changes.append(applied(NAME, node, f"Concat with {value:g}"))
        elif len(node.input) > _AXES and node.input[_AXES]:
            inputs = [node.input[0], _flat(view, node, pads), *([given] if given else [])]
            view.replace(node, "Pad", inputs, mode="constant")
            changes.append(applied(NAME, node, "pads of all axes in place of some"))
    return changes


def _needs_concat(view: GraphView, node: NodeProto, value: float) -> bool:
    """Whether the compiler has no form of it, or takes it for the padding of the layer behind, which has its own."""
    if view.dtype(node.input[0]) in _WHOLE:
        return True
    for user in view.users(node.output[0]):
        padded = any(attribute(user, "pads", ())) or attribute(user, "auto_pad", b"NOTSET").startswith(b"SAME")
        if user.op_type in _LAYERS and value and padded:
            return True
        # Before windows of even size even -65,504, -1e38 and -inf come out wrong, by 0.65 of full scale.
        even = any(size % 2 == 0 for size in attribute(user, "kernel_shape", ()))
        if user.op_type == "MaxPool" and (even or (value > _LOWEST and interval(view, node.input[0])[0] < value)):
            return True
    return False


def _joined(
    view: GraphView, node: NodeProto, shape: tuple[int, ...], pads: list[tuple[int, int]], value: float
) -> None:
    """What negative pads cut off is cut off, then constants are put before and behind, axis by axis."""
    name, dtype = str(node.output[0]), tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
    source, sizes = str(node.input[0]), list(shape)
    for axis, (begin, end) in enumerate(pads):
        if begin < 0 or end < 0:
            kept = numpy.arange(max(0, -begin), sizes[axis] - max(0, -end), dtype=numpy.int64)
            at = view.add_constant(f"{name}_kept_{axis}", kept)
            source = view.add_node("Gather", [source, at], f"{name}_cut_{axis}", axis=axis)
            sizes[axis] = len(kept)
    for axis, (begin, end) in enumerate(pads):
        parts = [
            view.add_constant(
                f"{name}_{side}_{axis}", numpy.full([*sizes[:axis], pad, *sizes[axis + 1 :]], value, dtype)
            )
            if pad > 0
            else ""
            for side, pad in (("before", begin), ("behind", end))
        ]
        joined = [part for part in (parts[0], source, parts[1]) if part]
        if len(joined) > 1:
            source = view.add_node("Concat", joined, f"{name}_joined_{axis}", axis=axis)
            sizes[axis] += max(0, begin) + max(0, end)
    view.replace(node, "Identity", [source])


def _around(view: GraphView, node: NodeProto, value: str, shape: tuple[int, ...], pads: list[tuple[int, int]]) -> None:
    """Zeros around, and where these are, the value."""
    name = str(node.output[0])
    zeros = view.add_node("Pad", [node.input[0], _flat(view, node, pads)], f"{name}_zeros", mode="constant")
    inside: Array = numpy.ones((1,) * len(shape), bool)
    for axis, (size, (begin, end)) in enumerate(zip(shape, pads, strict=True)):
        at = numpy.arange(-begin, size + end)
        inside = inside & ((at >= 0) & (at < size)).reshape([-1 if axis == o else 1 for o in range(len(shape))])
    view.replace(node, "Where", [view.add_constant(f"{name}_inside", inside), zeros, value])


def _flat(view: GraphView, node: NodeProto, pads: list[tuple[int, int]]) -> str:
    written = numpy.array([*(begin for begin, _ in pads), *(end for _, end in pads)], numpy.int64)
    return view.add_constant(f"{node.output[0]}_pads", written)


REWRITE = Rewrite(
    name=NAME,
    title="Pad with a constant names all axes, or becomes Concat",
    pattern="Pad in mode constant with `axes`, with a value that is computed, of int32 or int64; one before a layer "
    "that has padding of its own where its value is not 0; one before MaxPool whose input may be below its value, "
    "or whose windows are even",
    why="The compiler refuses `axes`, computed values and integers. Between layers it takes a Pad and the padding of "
    "the Conv behind it for one, and loses the value (an error of a third of full scale); before MaxPool with "
    "pads at the end it leaves them out of the windows. A Concat with constants is the same tensor.",
    default=True,
    apply=_apply,
)
