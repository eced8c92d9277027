"""Comparisons of integers that were cast to float for it."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "integer-compare"
_COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
_CHOICES = ("ArgMax", "ArgMin")
_INTEGERS = frozenset({TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT16})
_WHOLE = 2.0**31


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes(*_COMPARISONS, *_CHOICES):
        if not view.is_float(node.input[0]):
            continue
        sources = [_integer(view, str(name), f"{node.output[0]}_{index}") for index, name in enumerate(node.input)]
        if any(source is None for source in sources) or all(view.is_constant(name) for name in node.input):
            continue
        for index, source in enumerate(sources):
            assert source is not None
            view.set_input(node, index, source)
        if node.op_type == "ArgMin":  # the compiler has none of integers
            _as_arg_max(view, node)
        changes.append(applied(NAME, node, "on int32, without the cast to float"))
    return changes


def _integer(view: GraphView, name: str, wanted: str) -> str | None:
    """The int32 tensor that a float one was cast from, or a constant of whole numbers as int32."""
    values = view.constant(name)
    if values is not None:
        if values.dtype.kind != "f" or (numpy.abs(values) >= _WHOLE).any() or (values != numpy.trunc(values)).any():
            return None
        return view.add_constant(f"{wanted}_whole", values.astype(numpy.int32))
    cast = _cast(view, name)
    if cast is None:
        return None
    source = str(cast.input[0])
    if view.dtype(source) == TensorProto.INT32:
        return source
    return view.add_node("Cast", [source], f"{wanted}_int32", to=TensorProto.INT32)


def _as_arg_max(view: GraphView, node: NodeProto) -> None:
    zero = view.add_constant(f"{node.output[0]}_zero", numpy.zeros((), numpy.int32))
    negative = view.add_node("Sub", [zero, node.input[0]], f"{node.output[0]}_negative")
    written = {a.name: attribute(node, a.name) for a in node.attribute}
    view.replace(node, "ArgMax", [negative], **written)


def _cast(view: GraphView, name: str) -> NodeProto | None:
    cast = view.maker(name, "Cast")
    if cast is None or view.dtype(cast.input[0]) not in _INTEGERS:
        return None
    return cast if attribute(cast, "to") in (TensorProto.FLOAT, TensorProto.FLOAT16) else None


REWRITE = Rewrite(
    name=NAME,
    title="Integers are compared as integers",
    pattern="Equal, Less, Greater …, ArgMax or ArgMin of integers that were cast to float, or of those with whole"
    " constants",
    why="fp16 cannot tell integers above 2048 apart: token 49406 and 49407 are equal. As int32 they are "
    "compared exactly.",
    default=True,
    apply=_apply,
)
