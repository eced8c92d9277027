"""Signed activations as unsigned ones."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "quantized-unsigned"
_ZERO = 2
_UNSIGNED: dict[int, tuple[type, int]] = {
    TensorProto.INT8: (numpy.uint8, 128),
    TensorProto.INT16: (numpy.uint16, 32768),
}
# What the compiler computes wrongly, or refuses, where activations have this type.
_NEEDED: dict[int, tuple[str, ...]] = {
    TensorProto.INT8: ("Softmax", "LogSoftmax"),
    TensorProto.INT16: ("AveragePool", "GlobalAveragePool", "LayerNormalization", "HardSwish"),
}


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes: list[Change] = []
    for dtype, operators in _NEEDED.items():
        wanting = [node for node in view.nodes(*operators) if _reads(view, node, dtype)]
        if not wanting:
            continue
        tensors = [node for node in view.nodes("QuantizeLinear") if view.dtype(node.output[0]) == dtype]
        groups = [(node, *view.users(node.output[0])) for node in tensors if not view.is_constant(node.input[0])]
        if _is_seen(view, dtype) or not all(_is_closed(view, group) for group in groups):
            changes.append(
                refused(NAME, wanting[0], "an input or output of the graph is signed, or a zero point computed")
            )
            continue
        for group in groups:
            for node in group:
                _raise_zero(view, node, dtype)
        detail = f"{len(groups)} tensors have their zero point raised by {_UNSIGNED[dtype][1]}"
        changes.append(applied(NAME, wanting[0], detail))
    return changes


def needs(view: GraphView, node: NodeProto) -> bool:
    """Whether a node reads signed activations that the compiler gets wrong or refuses there."""
    return any(node.op_type in operators and _reads(view, node, dtype) for dtype, operators in _NEEDED.items())


def _reads(view: GraphView, node: NodeProto, dtype: int) -> bool:
    dequantize = view.maker(node.input[0], "DequantizeLinear")
    return dequantize is not None and view.dtype(dequantize.input[0]) == dtype


def _is_seen(view: GraphView, dtype: int) -> bool:
    """Whether somebody outside of the graph sees integers of this type."""
    return any(view.dtype(value.name) == dtype for value in (*view.graph.input, *view.graph.output))


def _is_closed(view: GraphView, group: tuple[NodeProto, ...]) -> bool:
    """Whether a QuantizeLinear is read by DequantizeLinear alone, all with constant zero points."""
    return all(
        (node is group[0] or node.op_type == "DequantizeLinear")
        and (len(node.input) <= _ZERO or not node.input[_ZERO] or view.constant(node.input[_ZERO]) is not None)
        and view.shape(node.input[1]) is not None
        for node in group
    )


def _raise_zero(view: GraphView, node: NodeProto, dtype: int) -> None:
    """Give a node an unsigned zero point, and with it the unsigned type."""
    unsigned, shift = _UNSIGNED[dtype]
    zero = view.constant(node.input[_ZERO]) if len(node.input) > _ZERO and node.input[_ZERO] else None
    if zero is None:
        zero = numpy.zeros(view.shape(node.input[1]) or (), numpy.int32)
    raised = view.add_constant(f"{node.output[0]}_unsigned", numpy.asarray(zero.astype(numpy.int32) + shift, unsigned))
    written = {a.name: attribute(node, a.name) for a in node.attribute if a.name != "output_dtype"}
    view.replace(node, node.op_type, [*node.input[:_ZERO], raised], domain=node.domain, **written)


REWRITE = Rewrite(
    name=NAME,
    title="Signed activations become unsigned",
    pattern="activations quantized to int8 in a graph with Softmax, or to int16 in one with AveragePool, "
    "GlobalAveragePool, LayerNormalization or HardSwish",
    why="The compiler has fewer forms for signed activations: it answers wrongly for Softmax in int8 (an error of the "
    "size of the result), and refuses AveragePool, LayerNormalization and HardSwish in int16. Integers and zero point "
    "raised by 128 or 32,768 are the same numbers.",
    default=True,
    apply=_apply,
)
