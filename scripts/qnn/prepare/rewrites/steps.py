"""Steps that several rewrites are made of: moving elements along an axis, and staying quantized between two nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from onnx import NodeProto

from qnn.prepare.rewrites.view import Array, GraphView, attribute


def moved(view: GraphView, node: NodeProto, moves: Sequence[tuple[int, Array]]) -> None:
    """Replace a node by Gathers of its first input, one an axis: `moves` are (axis, int64 indices), not empty.

    Where the node is quantized, so is every Gather: each but the last is followed by QuantizeLinear and
    DequantizeLinear with the parameters of the input, which loses nothing because no value changes.
    """
    quantized = view.maker(node.input[0], "DequantizeLinear")
    source = str(node.input[0])
    for axis, indices in moves[:-1]:
        at = view.add_constant(f"{node.output[0]}_at_{axis}", indices)
        source = view.add_node("Gather", [source, at], f"{node.output[0]}_axis_{axis}", axis=axis)
        source = requantized(view, source, quantized)
    axis, indices = moves[-1]
    at = view.add_constant(f"{node.output[0]}_at_{axis}", indices)
    view.replace(node, "Gather", [source, at], axis=axis)


def requantized(view: GraphView, name: str, dequantize: NodeProto | None) -> str:
    """The tensor behind a QuantizeLinear and DequantizeLinear with another one's parameters; itself for None."""
    if dequantize is None:
        return name
    written = {a: attribute(dequantize, a) for a in ("axis", "block_size") if attribute(dequantize, a) is not None}
    written["domain"] = dequantize.domain
    parameters = list(dequantize.input[1:])
    quantized = view.add_node("QuantizeLinear", [name, *parameters], f"{name}_q", **written)
    return view.add_node("DequantizeLinear", [quantized, *parameters], f"{name}_dq", **written)


def same_parameters(view: GraphView, one: NodeProto, other: NodeProto) -> bool:
    """Whether two QuantizeLinear or DequantizeLinear have equal scales and zero points, as constants or by name."""
    if len(one.input) != len(other.input):
        return False
    for first, second in zip(one.input[1:], other.input[1:], strict=True):
        values, others = view.constant(first), view.constant(second)
        if first != second and (values is None or others is None or values.tobytes() != others.tobytes()):
            return False
    return True


def reshaped(view: GraphView, name: str, shape: Sequence[int], wanted: str) -> str:
    """The tensor in another shape (of fixed, positive sizes)."""
    sizes = view.add_constant(f"{wanted}_shape", numpy.array(shape, numpy.int64))
    return view.add_node("Reshape", [name, sizes], wanted)


def transposed(view: GraphView, name: str, order: Sequence[int], wanted: str) -> str:
    """The tensor with its axes in another order; itself when the order is the one it has."""
    if list(order) == list(range(len(order))):
        return name
    return view.add_node("Transpose", [name], wanted, perm=list(order))
