"""float64 inside a graph."""

from __future__ import annotations

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.view import Array, GraphView
from qnn.prepare.weights import bring_near, is_far

NAME = "double-to-float"
_EXACT = 2**24  # whole numbers up to here are float32 numbers
_TYPE_ATTRIBUTES = frozenset({"to", "dtype"})


def apply(model: ModelProto) -> list[Change]:
    """Make every float64 tensor inside the graph float32, all or none."""
    view = GraphView(model)
    border = (*model.graph.input, *model.graph.output)
    nodes = [node for node in model.graph.node if _touches(view, node)]
    if not nodes or any(value.type.tensor_type.elem_type == TensorProto.DOUBLE for value in border):
        return []
    why = next((why for node in nodes if (why := _unfit(view, node)) is not None), None)
    if why is not None:
        return [refused(NAME, nodes[0], why)]
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.DOUBLE:
            if is_far(tensor):
                bring_near(tensor)
            array = onnx.numpy_helper.to_array(tensor).astype(numpy.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    for node in nodes:
        _narrow(node)
    count = len(nodes)
    return [applied(NAME, nodes[0], f"{count} node{'s' if count > 1 else ''} from here on computed in float64")]


def _touches(view: GraphView, node: NodeProto) -> bool:
    return any(name and view.dtype(name) == TensorProto.DOUBLE for name in (*node.input, *node.output))


def _unfit(view: GraphView, node: NodeProto) -> str | None:
    for name in node.input:
        array = view.constant(name) if name and view.dtype(name) == TensorProto.DOUBLE else None
        if array is not None and not _fits(array):
            return f"the constant {name} has values that float32 does not have"
    if node.op_type == "Cast" and view.dtype(node.input[0]) in (TensorProto.INT32, TensorProto.INT64):
        low, high = interval(view, node.input[0])
        if low < -_EXACT or high > _EXACT:
            return f"{node.name} makes float64 of integers that may exceed 2^24"
    return None


def _fits(array: Array) -> bool:
    with numpy.errstate(over="ignore", under="ignore"):
        narrow = array.astype(numpy.float32)
    whole = (array == numpy.trunc(array)) & (numpy.abs(array) > _EXACT) & numpy.isfinite(array)
    lost = (numpy.isfinite(array) & ~numpy.isfinite(narrow)) | ((array != 0) & (narrow == 0))
    return not bool(lost.any()) and bool((narrow[whole] == array[whole]).all())


def _narrow(node: NodeProto) -> None:
    for entry in node.attribute:
        if entry.name in _TYPE_ATTRIBUTES and entry.i == TensorProto.DOUBLE:
            entry.i = TensorProto.FLOAT
        elif entry.HasField("t") and entry.t.data_type == TensorProto.DOUBLE:
            entry.t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(entry.t).astype(numpy.float32)))


REWRITE = Rewrite(
    name=NAME,
    title="float64 inside a graph becomes float32",
    pattern="nodes that read or make float64, none of it an input or output of the graph",
    why="HTP has no float64 and the compiler refuses it. Numbers between float32 ones are rounded, as they would be "
    "at the end anyway; constants that float32 does not have at all (beyond 3.4e38, whole numbers above 2^24 that "
    "would be rounded) and integers that may be that large are left, and said.",
    default=True,
    apply=apply,
)
