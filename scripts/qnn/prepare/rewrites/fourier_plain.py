"""DFT as a product with the Fourier basis."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import reshaped, transposed
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "fourier-plain"
_AXIS_AS_INPUT = 20


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("DFT"):
        known = view.shape(node.input[0]) is not None and view.shape(node.output[0]) is not None
        if not known or not view.is_float(node.input[0]):
            changes.append(refused(NAME, node, "only of float32 of a known shape is it a product"))
        elif any(name and view.constant(name) is None for name in node.input[1:]):
            changes.append(refused(NAME, node, "its length or axis is no constant"))
        else:
            changes.append(_dft(view, node))
    return changes


def _basis(length: int, bins: int, rows: int) -> Array:
    """complex128[rows, bins]: exp(-2πi·row·bin/length), the exponent taken modulo one turn first."""
    turns = (numpy.arange(rows)[:, None] * numpy.arange(bins) % length) / length
    basis: Array = numpy.exp(-2j * numpy.pi * turns)
    return basis


def _parts(basis: Array) -> Array:
    """[…, 2]: real and imaginary part."""
    return numpy.stack([basis.real, basis.imag], axis=-1)


def _dft(view: GraphView, node: NodeProto) -> Change:
    before, after = view.shape(node.input[0]) or (), view.shape(node.output[0]) or ()
    rank, axis = len(before), _axis(view, node)
    axis = axis % rank
    given = view.scalar(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    weights = _weights(node, before[axis], after[axis], None if given is None else int(given))[:, : before[-1]]
    made = str(node.output[0])
    order = [*(other for other in range(rank - 1) if other != axis), axis, rank - 1]
    name = transposed(view, node.input[0], order, f"{made}_axis_last")
    front = [before[other] for other in order[:-2]]
    name = reshaped(view, name, [prod(front), before[axis] * before[-1]], f"{made}_rows")
    matrix = weights.reshape(before[axis] * before[-1], -1).astype(_dtype(view, node))
    name = view.add_node("MatMul", [name, view.add_constant(f"{made}_basis", matrix)], f"{made}_product")
    name = reshaped(view, name, [*front, after[axis], after[-1]], f"{made}_parts")
    back = [order.index(other) for other in range(rank)]
    new = view.replace(node, "Identity", [transposed(view, name, back, f"{made}_back")])
    return applied(NAME, new, f"{before[axis]} to {after[axis]} points became a MatMul by the Fourier basis")


def _weights(node: NodeProto, before: int, after: int, given: int | None) -> Array:
    """What a point (real, imaginary) adds to one of the result: float64[before, 2, after, 2], or 1 last for irfft."""
    if attribute(node, "inverse", 0) and attribute(node, "onesided", 0):
        # The other half is the conjugate of this one, so that only real parts are left: all but the first point, and
        # the middle one of an even length, stand for two.
        basis = _basis(after, after, before).conj() / after
        twice = (numpy.arange(before) > 0) & (2 * numpy.arange(before) < after)
        basis = numpy.where(twice[:, None], 2 * basis, basis)
        basis[after // 2 + 1 :] = 0
        return numpy.stack([basis.real, -basis.imag], axis=1)[..., None]
    length = before if given is None else given
    basis = _basis(length, after, before)
    basis[length:] = 0  # what is beyond the length is cut off
    if attribute(node, "inverse", 0):
        basis = basis.conj() / length
    return numpy.stack([_parts(basis), _parts(1j * basis)], axis=1)


def _axis(view: GraphView, node: NodeProto) -> int:
    if view.opset() < _AXIS_AS_INPUT:
        return int(attribute(node, "axis", 1))
    given = view.scalar(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    return -2 if given is None else int(given)


def _dtype(view: GraphView, node: NodeProto) -> numpy.dtype[numpy.generic]:
    dtype: numpy.dtype[numpy.generic] = tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
    return dtype


REWRITE = Rewrite(
    name=NAME,
    title="DFT becomes a product with the Fourier basis",
    pattern="DFT, along any axis, inverse or not (torch.fft)",
    why="The compiler has no DFT (STFT it has). A DFT is a MatMul by a constant. It is summed in another order than a "
    "fast transform, whose own error in ONNX Runtime, up to 1e-5 of the largest number, is the larger one.",
    default=True,
    apply=_apply,
)
