"""Casts that the compiler refuses or computes wrongly, by way of int32."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "cast-by-int32"
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16})
_INTEGERS = frozenset({TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT32})
_WHOLE = frozenset({"Ceil", "Floor", "Round", "Sign"})
_WIDE = frozenset({TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32})
_BY_INT32 = frozenset(
    {
        (TensorProto.UINT8, TensorProto.FLOAT),
        (TensorProto.UINT8, TensorProto.INT64),
        (TensorProto.BOOL, TensorProto.INT64),
        (TensorProto.FLOAT, TensorProto.INT64),
        (TensorProto.FLOAT16, TensorProto.INT64),
        (TensorProto.FLOAT16, TensorProto.UINT8),
    }
)


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Cast"):
        source, target = view.dtype(node.input[0]), int(attribute(node, "to"))
        rounds = target != TensorProto.INT32 or bool(view.users(node.output[0]))  # alone, the last node is right
        if source in _FLOATS and target in _INTEGERS and rounds and not _is_whole(view, str(node.input[0])):
            view.set_input(node, 0, _truncated(view, str(node.input[0]), str(node.output[0])))
            changes.append(applied(NAME, node, "its fraction is cut off before the cast"))
        if (source, target) in _BY_INT32:
            middle = view.add_node("Cast", [node.input[0]], f"{node.output[0]}_int32", to=TensorProto.INT32)
            view.replace(node, "Cast", [middle], to=target)
            changes.append(applied(NAME, node, f"{_name(source)} to {_name(target)} by way of int32"))
        elif source in _WIDE and target == TensorProto.BOOL:
            _compare_with_zero(view, node, source)
            changes.append(applied(NAME, node, f"{_name(source)} to bool as a comparison with 0"))
        elif (source, target) == (TensorProto.FLOAT16, TensorProto.BOOL):
            middle = view.add_node("Cast", [node.input[0]], f"{node.output[0]}_float", to=TensorProto.FLOAT)
            view.replace(node, "Cast", [middle], to=target)
            changes.append(applied(NAME, node, "float16 to bool by way of float32"))
    return changes


def _is_whole(view: GraphView, name: str) -> bool:
    """Whether the tensor can hold whole numbers only."""
    node = view.maker(name)
    if node is None:
        return False
    return node.op_type in _WHOLE or (node.op_type == "Cast" and view.dtype(node.input[0]) not in _FLOATS)


def _truncated(view: GraphView, name: str, wanted: str) -> str:
    """The numbers without their fractions: sign(x) · floor(|x|)."""
    if interval(view, name)[0] >= 0:
        return view.add_node("Floor", [name], f"{wanted}_whole")
    size = view.add_node("Floor", [view.add_node("Abs", [name], f"{wanted}_magnitude")], f"{wanted}_floor")
    return view.add_node("Mul", [size, view.add_node("Sign", [name], f"{wanted}_sign")], f"{wanted}_whole")


def _compare_with_zero(view: GraphView, node: NodeProto, source: int) -> None:
    name, tensor = str(node.output[0]), str(node.input[0])
    if source != TensorProto.INT32:
        tensor = view.add_node("Cast", [tensor], f"{name}_int32", to=TensorProto.INT32)
    zero = view.add_constant(f"{name}_zero", numpy.zeros((), numpy.int32))
    equal = view.add_node("Equal", [tensor, zero], f"{name}_is_zero")
    view.replace(node, "Not", [equal])


def _name(dtype: int) -> str:
    return str(tensor_dtype_to_np_dtype(dtype))


REWRITE = Rewrite(
    name=NAME,
    title="Casts go by way of int32, whole numbers first",
    pattern="Cast of uint8 to float32 or int64, of bool, float32 or float16 to int64, of float16 to uint8 or "
    "bool, of int32, int64 or uint32 to bool, and of float32 or float16 to an integer",
    why="The compiler makes 1.0 of every uint8 above 0, takes some integers for False, rounds a float to the "
    "nearest integer where ONNX cuts its fraction off (when anything follows the cast), and refuses the "
    "others. By way of int32, as a comparison with 0, and of numbers without a fraction, every value is "
    "right that fits 32 bits, and HTP has no wider ones.",
    default=True,
    apply=_apply,
)
