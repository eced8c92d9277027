"""GatherND with constant positions, as mask code of transformers has it."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "gather-nd"
_TYPES = frozenset({TensorProto.BOOL, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64})


def apply(model: ModelProto) -> list[Change]:
    """GatherND at constant positions becomes Reshape and Gather, and Expand where positions repeat."""
    view = GraphView(model)
    changes = []
    for node in view.nodes("GatherND"):
        if view.is_quantized(node):
            continue
        if attribute(node, "batch_dims", 0):
            if not _without_batch(view, node):
                continue
            changes.append(applied(NAME, node, "its batch dimensions are written as positions"))
        rows = _rows(view, node)
        if rows is None:
            changes.append(refused(NAME, node, "its positions are computed"))
        elif view.dtype(node.input[0]) in _TYPES:
            changes.append(_replace(view, node, rows))
    return changes


def _without_batch(view: GraphView, node: NodeProto) -> bool:
    """Write the batch dimensions as coordinates in front of the positions, in place; False where a shape is open."""
    batch, places = int(attribute(node, "batch_dims")), view.shape(node.input[1])
    if places is None:
        return False
    grid = numpy.moveaxis(numpy.indices(places[:-1], numpy.int64)[:batch], 0, -1)
    positions = view.constant(node.input[1])
    wanted = f"{node.output[0]}_positions"
    if positions is not None:
        at = view.add_constant(wanted, numpy.concatenate([grid, positions], axis=-1))
    else:
        in_front = view.add_constant(f"{wanted}_batch", grid)
        at = view.add_node("Concat", [in_front, node.input[1]], wanted, axis=-1)
    view.set_input(node, 1, at)
    del node.attribute[:]
    return True


def _rows(view: GraphView, node: NodeProto) -> Array | None:
    """The gathered positions in the data with its indexed dimensions made one."""
    shape, positions = view.shape(node.input[0]), view.constant(node.input[1])
    if shape is None or positions is None or not positions.shape or not positions.shape[-1]:
        return None
    depth = positions.shape[-1]
    sizes = numpy.array(shape[:depth], numpy.int64)
    wrapped = numpy.where(positions < 0, positions + sizes, positions)
    steps = numpy.array([prod(shape[axis + 1 : depth]) for axis in range(depth)], numpy.int64)
    rows: Array = (wrapped * steps).sum(axis=-1)
    return rows


def _replace(view: GraphView, node: NodeProto, rows: Array) -> Change:
    source, made = node.input[0], node.output[0]
    shape = view.shape(source) or ()
    depth = len(shape) - (len(view.shape(made) or ()) - rows.ndim)
    rest = shape[depth:]
    small = _without_repeats(rows)
    boolean = view.dtype(source) == TensorProto.BOOL
    moved = numpy.array_equal(small.reshape(-1), numpy.arange(prod(shape[:depth])))
    if not moved or (boolean and small.shape != rows.shape):
        source = view.add_node("Cast", [source], f"{made}_numbers", to=TensorProto.INT32) if boolean else source
    else:
        boolean = False
    if moved:
        source = _reshape(view, source, (*small.shape, *rest), f"{made}_moved")
    else:
        source = _reshape(view, source, (prod(shape[:depth]), *rest), f"{made}_rows")
        index = view.add_constant(f"{made}_index", small.astype(numpy.int64))
        source = view.add_node("Gather", [source, index], f"{made}_gathered", axis=0)
    if small.shape != rows.shape:
        target = view.add_constant(f"{made}_shape", numpy.array((*rows.shape, *rest), numpy.int64))
        source = view.add_node("Expand", [source, target], f"{made}_expanded")
    if boolean:
        new = view.replace(node, "Cast", [source], to=TensorProto.BOOL)
    else:
        new = view.replace(node, "Identity", [source])
    how = "a Reshape" if moved else f"Gather of {small.size} along one axis"
    return applied(NAME, new, f"its {rows.size} positions are constant: {how}")


def _without_repeats(rows: Array) -> Array:
    """The positions with every dimension along which they repeat cut to size 1."""
    small = rows
    for axis in range(rows.ndim):
        first = small.take([0], axis=axis)
        if bool((small == first).all()):
            small = first
    return small


def _reshape(view: GraphView, name: str, shape: tuple[int, ...], wanted: str) -> str:
    return view.add_node(
        "Reshape", [name, view.add_constant(f"{wanted}_shape", numpy.array(shape, numpy.int64))], wanted
    )


REWRITE = Rewrite(
    name=NAME,
    title="GatherND at constant positions becomes Gather",
    pattern="GatherND with batch dimensions; GatherND whose indices are a constant (the mask code of "
    "transformers, once its shapes are fixed)",
    why="The compiler refuses GatherND of booleans, and with batch dimensions. Constant positions in several "
    "dimensions are positions in one; where they repeat along a dimension, as a padding mask does for "
    "every query, the result is expanded. Booleans pass as 0 and 1. Nothing is computed, only moved.",
    default=True,
    apply=apply,
)
