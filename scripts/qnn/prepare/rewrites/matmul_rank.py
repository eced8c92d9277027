"""MatMul of more than four dimensions as one of three."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import requantized, reshaped
from qnn.prepare.rewrites.view import GraphView

NAME = "matmul-rank"
_RANK = 4
_MATRIX = 2


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("MatMul"):
        first, second, result = (view.shape(name) for name in (*node.input, node.output[0]))
        if first is None or second is None or result is None or len(result) <= _RANK:
            continue
        if min(len(first), len(second)) < 2:
            continue
        if any(_has_weights_in_rank(view, str(name)) for name in node.input):
            changes.append(refused(NAME, node, "its quantized weights have more than two dimensions"))
            continue
        _replace(view, node, first, second, result)
        changes.append(applied(NAME, node, f"{list(first)} · {list(second)} in three dimensions"))
    return changes


def _replace(
    view: GraphView, node: NodeProto, first: tuple[int, ...], second: tuple[int, ...], result: tuple[int, ...]
) -> None:
    name, batch = str(node.output[0]), result[:-2]
    of_result = next((user for user in view.users(name) if user.op_type == "QuantizeLinear"), None)
    if all(size == 1 for size in second[:-2]):  # every row of the first meets the same matrix
        left = _moved(view, str(node.input[0]), [prod(first[:-1]), first[-1]], f"{name}_left")
        right = _moved(view, str(node.input[1]), second[-2:], f"{name}_right")
    else:
        left = _merged(view, str(node.input[0]), first, batch, f"{name}_left")
        right = _merged(view, str(node.input[1]), second, batch, f"{name}_right")
    product = requantized(view, view.add_node("MatMul", [left, right], f"{name}_product"), of_result)
    view.replace(node, "Reshape", [product, view.add_constant(f"{name}_shape", numpy.array(result, numpy.int64))])


def _merged(view: GraphView, name: str, shape: tuple[int, ...], batch: tuple[int, ...], wanted: str) -> str:
    """[product of batch, rows, columns], or [1, rows, columns] for one that is the same in all of the batch."""
    own = shape[:-2]
    if prod(own) > 1 and (1,) * (len(batch) - len(own)) + own != batch:
        sizes = view.add_constant(f"{wanted}_sizes", numpy.array([*batch, *shape[-2:]], numpy.int64))
        expanded = view.add_node("Expand", [name, sizes], f"{wanted}_expanded")
        name = requantized(view, expanded, view.maker(name, "DequantizeLinear"))
        own = batch
    return _moved(view, name, [prod(own), *shape[-2:]], wanted)


def _moved(view: GraphView, name: str, shape: Sequence[int], wanted: str) -> str:
    """The tensor in another shape, quantized as before if it is quantized."""
    if view.shape(name) == tuple(shape):
        return name
    return requantized(view, reshaped(view, name, shape, wanted), view.maker(name, "DequantizeLinear"))


def _has_weights_in_rank(view: GraphView, name: str) -> bool:
    """Whether a tensor is quantized weights with several scales that a Reshape would separate from their axis."""
    dequantize = view.maker(name, "DequantizeLinear")
    if dequantize is None:
        return False
    scale, shape = view.shape(dequantize.input[1]), view.shape(name)
    return scale is None or shape is None or (prod(scale) > 1 and len(shape) > _MATRIX)


REWRITE = Rewrite(
    name=NAME,
    title="MatMul of five dimensions becomes one of three",
    pattern="MatMul whose result has more than four dimensions",
    why="The compiler refuses it. Reshapes merge the dimensions before the last two; where the operands "
    "differ there, Expand makes them equal first.",
    default=True,
    apply=_apply,
)
