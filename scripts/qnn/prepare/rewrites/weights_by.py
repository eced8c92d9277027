"""Another form of a layer's constant weights, be they float or quantized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy

from qnn.prepare.rewrites.view import Array, GraphView, attribute


def changed_weights(view: GraphView, name: str, wanted: str, change: Callable[[Array], Array]) -> str | None:
    """The name of new weights: `change` of the old ones, where a 0 that it puts in means the number 0.

    Quantized weights (a DequantizeLinear of a constant) are changed as integers around their zero point and keep their
    scales, so `change` must not touch the axis of per-channel scales; with one scale it may change the rank. None when
    the weights are not constant, lie in a far file, or are quantized in blocks.
    """
    values = view.constant(name)
    if values is not None:
        return view.add_constant(wanted, change(values))
    dequantize = view.maker(name, "DequantizeLinear")
    if dequantize is None or attribute(dequantize, "block_size", 0):
        return None
    stored = view.constant(dequantize.input[0])
    if stored is None:
        return None
    has_zero = len(dequantize.input) > 2 and dequantize.input[2]
    zero = view.constant(dequantize.input[2]) if has_zero else numpy.zeros((), stored.dtype)
    if zero is None:
        return None
    axis = int(attribute(dequantize, "axis", 1))
    shape = _along(axis % stored.ndim, zero.size, stored.ndim) if zero.size > 1 else ()
    around = numpy.reshape(zero, shape).astype(numpy.int32)
    moved = change(stored.astype(numpy.int32) - around) + around
    quantized = view.add_constant(f"{wanted}_q", moved.astype(stored.dtype))
    # The scales' axis means something only where there are several; on a tensor of one axis it would be refused.
    scale = view.shape(dequantize.input[1])
    written = {"axis": axis} if scale is None or prod(scale) > 1 else {}
    inputs = [quantized, *dequantize.input[1:]]
    return view.add_node("DequantizeLinear", inputs, wanted, domain=dequantize.domain, **written)


def _along(axis: int, size: int, rank: int) -> Sequence[int]:
    return [size if index == axis else 1 for index in range(rank)]
