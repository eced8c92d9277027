"""Adaptive average pooling to sizes that do not divide the input's, as PyTorch's exporter writes it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy
from onnx import ModelProto, NodeProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.steps import transposed
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "adaptive-average-pool"
_RANKS = (3, 4)
# Sizes of the axes in front while a region is computed: that it treats them all alike does not depend on them.
_FRONT = (2, 3)


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    if not any(view.constant(node.input[1]) is not None for node in view.nodes("GatherND")):
        return []
    changes = []
    for node in view.nodes("Div", "ReduceMean"):
        if view.is_quantized(node) or not view.is_float(node.output[0]):
            continue
        source = _source(view, node)
        if source is not None and _is_pooling(view, node, source):
            changes.append(_replace(view, node, source))
    return changes


def _source(view: GraphView, end: NodeProto) -> str | None:
    """The one tensor that `end` is computed of by moving, masking and adding elements, a GatherND among it."""
    found: set[str] = set()
    seen: set[str] = set()
    gathers = False
    waiting = [str(end.output[0])]
    while waiting:
        name = waiting.pop()
        if name in seen or view.constant(name) is not None:
            continue
        seen.add(name)
        node = view.maker(name, *_STEPS) if name != end.output[0] else end
        if node is None:
            found.add(name)
        elif node.op_type == "GatherND":
            gathers = True
            # Before it is a Transpose that brings the gathered axes to the front.
            turned = view.maker(node.input[0], "Transpose")
            found.add(str(node.input[0] if turned is None else turned.input[0]))
        else:
            waiting += [str(read) for read in node.input if read]
    return found.pop() if gathers and len(found) == 1 else None


def _is_pooling(view: GraphView, end: NodeProto, source: str) -> bool:
    """Whether `end` is the adaptive average of the last two axes of `source`, tried on numbers in float64.

    What lies between is linear, so that it is the same for all numbers if it is for random ones.
    """
    before, after = view.shape(source), view.shape(end.output[0])
    if before is None or after is None or len(before) not in _RANKS or before[:-2] != after[:-2]:
        return False
    x = numpy.random.default_rng(0).standard_normal((*_FRONT[: len(before) - 2], *before[-2:]))
    computed = _Region(view, source, x).value(str(end.output[0]))
    rows, columns = (_averages(before[axis], after[axis]) for axis in (-2, -1))
    wanted = rows.T @ x @ columns
    return (
        computed is not None and computed.shape == wanted.shape and bool(numpy.allclose(computed, wanted, 1e-6, 1e-6))
    )


def _averages(before: int, after: int) -> Array:
    """float64[before, after]: the share of every element in every average, as PyTorch places the windows."""
    weights = numpy.zeros((before, after))
    for place in range(after):
        first, last = place * before // after, -(-(place + 1) * before // after)
        weights[first:last, place] = 1 / (last - first)
    return weights


class _Region:
    """The tensors between a source and an end, computed in float64 (None where a step has a form unknown here)."""

    def __init__(self, view: GraphView, source: str, x: Array) -> None:
        self._view = view
        self._values: dict[str, Array | None] = {source: x}

    def value(self, name: str) -> Array | None:
        """One tensor, by the steps before it first: a chain of Adds is longer than Python's stack is deep."""
        waiting = [name]
        while waiting:
            last = waiting[-1]
            node = self._view.maker(last)
            if last in self._values:
                waiting.pop()
            elif node is None or self._view.constant(last) is not None:
                self._values[last] = self._view.constant(last)
            else:
                missing = [str(read) for read in node.input if read and str(read) not in self._values]
                waiting += missing
                if not missing:
                    self._values[last] = self._step(node)
        return self._values[name]

    def _step(self, node: NodeProto) -> Array | None:
        read = [self._values[str(name)] for name in node.input if name]
        values = [array for array in read if array is not None]
        step = _STEPS.get(node.op_type) or _ENDS.get(node.op_type)
        return None if step is None or len(values) != len(read) else step(node, *values)


def _gather_nd(node: NodeProto, x: Array, places: Array) -> Array | None:
    sizes = numpy.array(x.shape[: places.shape[-1]])
    if attribute(node, "batch_dims", 0) or len(sizes) < places.shape[-1] or (places >= sizes).any():
        return None
    taken: Array = x[tuple(numpy.moveaxis(places, -1, 0))]
    return taken


def _gather(node: NodeProto, x: Array, places: Array) -> Array | None:
    axis = attribute(node, "axis", 0)
    return None if (places >= x.shape[axis]).any() else x.take(places, axis)


def _where(_: NodeProto, mask: Array, one: Array, other: Array) -> Array:
    chosen: Array = numpy.where(mask, one, other)
    return chosen


def _mean(node: NodeProto, x: Array, *axes: Array) -> Array | None:
    written = axes[0].tolist() if axes else attribute(node, "axes", [])
    mean: Array = x.mean(tuple(written), keepdims=bool(attribute(node, "keepdims", 1)))
    return mean


_Step = Callable[..., Array | None]
_STEPS: Mapping[str, _Step] = {
    "GatherND": _gather_nd,
    "Gather": _gather,
    "Transpose": lambda node, x: x.transpose(attribute(node, "perm")),
    "Where": _where,
    "Add": lambda _, one, other: one + other,
}
_ENDS: Mapping[str, _Step] = {"Div": lambda _, x, by: x / by, "ReduceMean": _mean}


def _replace(view: GraphView, node: NodeProto, source: str) -> Change:
    before, after = view.shape(source) or (), view.shape(node.output[0]) or ()
    dtype = tensor_dtype_to_np_dtype(view.dtype(node.output[0]))
    turn = [*range(len(before) - 2), len(before) - 1, len(before) - 2]
    name, made = source, str(node.output[0])
    for axis, what in ((-1, "columns"), (-2, "rows")):
        weights = view.add_constant(f"{made}_{what}_weights", _averages(before[axis], after[axis]).astype(dtype))
        name = view.add_node("MatMul", [name, weights], f"{made}_{what}")
        name = transposed(view, name, turn, f"{made}_{what}_turned")
    new = view.replace(node, "Identity", [name])
    return applied(NAME, new, f"the average of {list(before[-2:])} to {list(after[-2:])} became MatMuls")


REWRITE = Rewrite(
    name=NAME,
    title="Adaptive average pooling becomes MatMuls",
    pattern="what PyTorch's exporter writes for AdaptiveAvgPool (or interpolate in mode area) to sizes that do not "
    "divide the input's: a GatherND of all windows into six dimensions, masks, a Gather and an Add an element, a Div",
    why="HTP has five dimensions at most. An average is linear, and what is found is held to its definition on "
    "numbers, so it is a product with constant weights along each of the two axes.",
    default=True,
    apply=_apply,
)
