"""Every written-out RMS norm becomes the operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.opset import raise_opset
from qnn.prepare.rewrites.reduction import axes_of
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "rms-norm"
_OPSET = 23
_LOSSLESS = frozenset(
    {
        (TensorProto.FLOAT, TensorProto.FLOAT),
        (TensorProto.FLOAT16, TensorProto.FLOAT),
        (TensorProto.FLOAT16, TensorProto.FLOAT16),
    }
)


@dataclass(frozen=True)
class _Norm:
    """x / sqrt(mean(x²) + epsilon), found at `node`, before any weight."""

    node: NodeProto
    x: str
    epsilon: float
    mean: NodeProto


def apply(model: ModelProto) -> list[Change]:
    """Replace every written-out RMS norm over the last axis by RMSNormalization, raising the opset to 23."""
    view = GraphView(model)
    found = list(_find(view))
    changes = [refused(NAME, norm.node, why) for norm in found if (why := _unfit(view, norm)) is not None]
    fit = [norm for norm in found if _unfit(view, norm) is None]
    if not fit:
        return changes
    why = raise_opset(model, _OPSET)
    if why is not None:
        return changes + [refused(NAME, norm.node, why) for norm in fit]
    view = GraphView(model)
    return changes + [_replace(view, norm) for norm in fit]


def _find(view: GraphView) -> Iterator[_Norm]:
    for node in view.nodes("Div", "Mul"):
        norm = _match(view, node)
        if norm is not None and not view.is_quantized(norm.node):
            yield norm


def _match(view: GraphView, node: NodeProto) -> _Norm | None:
    """x / sqrt(·), or x · 1/sqrt(·) in any of its forms."""
    for position in (0, 1) if node.op_type == "Mul" else (0,):
        x, factor = node.input[position], node.input[1 - position]
        inner = _root(view, factor) if node.op_type == "Div" else _inverse_root(view, factor)
        found = None if inner is None else _mean_square(view, inner)
        if found is not None and _same(view, found[0], x):
            return _Norm(node, x, found[1], found[2])
    return None


def _through_casts(view: GraphView, name: str) -> str:
    """The tensor before casts that lose nothing: from float16 to float32, or from a type to itself."""
    node = view.maker(name, "Cast")
    while node is not None and (view.dtype(node.input[0]), view.dtype(name)) in _LOSSLESS:
        name = node.input[0]
        node = view.maker(name, "Cast")
    return name


def _same(view: GraphView, squared: str, x: str) -> bool:
    return _through_casts(view, squared) == _through_casts(view, x)


def _root(view: GraphView, name: str) -> str | None:
    """What the square root is taken of."""
    name = _through_casts(view, name)
    root = view.maker(name, "Sqrt")
    if root is not None:
        return str(root.input[0])
    return _power(view, name, 0.5)


def _inverse_root(view: GraphView, name: str) -> str | None:
    """What 1/sqrt is taken of: Reciprocal(Sqrt), Div(1, Sqrt), Pow(-0.5), Sqrt(Reciprocal)."""
    name = _through_casts(view, name)
    inverse = view.maker(name, "Reciprocal", "Div")
    if inverse is not None:
        if inverse.op_type == "Div" and view.scalar(inverse.input[0]) != 1.0:
            return None
        return _root(view, inverse.input[-1])
    root = view.maker(name, "Sqrt")
    inverse = None if root is None else view.maker(root.input[0], "Reciprocal", "Div")
    if inverse is not None and (inverse.op_type == "Reciprocal" or view.scalar(inverse.input[0]) == 1.0):
        return str(inverse.input[-1])
    return _power(view, name, -0.5)


def _power(view: GraphView, name: str, exponent: float) -> str | None:
    power = view.maker(name, "Pow")
    return str(power.input[0]) if power is not None and view.scalar(power.input[1]) == exponent else None


def _mean_square(view: GraphView, name: str) -> tuple[str, float, NodeProto] | None:
    """(x, epsilon, the ReduceMean) of mean(x²) + epsilon."""
    inner, epsilon = _through_casts(view, name), 0.0
    plus = view.maker(inner, "Add")
    if plus is not None:
        found = next((i for i in (0, 1) if view.scalar(plus.input[i]) is not None), None)
        if found is None:
            return None
        epsilon = view.scalar(plus.input[found]) or 0.0
        inner = _through_casts(view, plus.input[1 - found])
    mean = view.maker(inner, "ReduceMean")
    squared = None if mean is None else _squared(view, _through_casts(view, mean.input[0]))
    return None if mean is None or squared is None or epsilon < 0 else (squared, epsilon, mean)


def _squared(view: GraphView, name: str) -> str | None:
    square = view.maker(name, "Mul", "Pow")
    if square is None:
        return None
    if square.op_type == "Pow":
        return str(square.input[0]) if view.scalar(square.input[1]) == 2.0 else None
    return str(square.input[0]) if _same(view, square.input[0], square.input[1]) else None


def _unfit(view: GraphView, norm: _Norm) -> str | None:
    """Why this norm cannot be the operator; None when it can."""
    shape = view.shape(norm.x)
    if shape is None or axes_of(view, norm.mean) != (len(shape) - 1,):
        return "it does not normalise over the last axis"
    if not attribute(norm.mean, "keepdims", 1) or view.shape(norm.node.output[0]) != shape:
        return "the mean is not kept as an axis of size 1"
    return None if view.is_float(norm.x) else "it is neither float32 nor float16"


def _replace(view: GraphView, norm: _Norm) -> Change:
    """One operator for the norm, its casts and its weight."""
    size = (view.shape(norm.x) or (0,))[-1]
    last, x, weight = norm.node, norm.x, None
    scaled = _weight_behind(view, norm.node, size)
    if scaled is not None:
        x, last, weight = scaled
    if weight is None:
        dtype = tensor_dtype_to_np_dtype(view.dtype(x))
        weight = view.add_constant(f"{last.output[0]}_ones", numpy.ones(size, dtype))
    elif view.shape(weight) != (size,):
        array = view.constant(weight)
        assert array is not None  # _weight_behind took far weights of one dimension only
        weight = view.add_constant(f"{last.output[0]}_weight", array.reshape(size))
    new = view.replace(last, "RMSNormalization", [x, weight], axis=-1, epsilon=norm.epsilon)
    return applied(NAME, new, f"a written-out RMS norm (epsilon {norm.epsilon:.3g}) is RMSNormalization")


def _weight_behind(view: GraphView, node: NodeProto, size: int) -> tuple[str, NodeProto, str] | None:
    """(x, the Mul with a constant weight for the last axis, the weight), when that is all the norm goes into.

    A norm computed in float32 for a float16 model is cast back before the weight: RMSNormalization does that itself.
    """
    x, users = _source(view, node), view.users(node.output[0])
    if len(users) != 1 or view.is_output(node.output[0]):
        return None
    (user,) = users
    made = node.output[0]
    if user.op_type == "Cast":
        users = view.users(user.output[0])
        narrow = _through_casts(view, x)
        if len(users) != 1 or view.is_output(user.output[0]) or view.dtype(narrow) != view.dtype(user.output[0]):
            return None
        x, made, (user,) = narrow, user.output[0], users
    weight = view.other_input(user, made) if user.op_type == "Mul" else None
    if weight is None or not view.is_constant(weight) or view.dtype(weight) != view.dtype(x):
        return None
    shape = view.shape(weight) or ()
    only_last = bool(shape) and shape[-1] == size and all(dim == 1 for dim in shape[:-1])
    readable = len(shape) == 1 or view.constant(weight) is not None
    fits = only_last and readable and view.dtype(x) in (TensorProto.FLOAT, TensorProto.FLOAT16)
    return (x, user, weight) if fits and len(shape) <= len(view.shape(x) or ()) else None


def _source(view: GraphView, node: NodeProto) -> str:
    norm = _match(view, node)
    assert norm is not None
    return norm.x


REWRITE = Rewrite(
    name=NAME,
    title="A written-out RMS norm becomes RMSNormalization",
    pattern="x / sqrt(mean(x²) + ε) over the last axis: the square as Mul(x, x) or Pow(x, 2), the root as Sqrt, "
    "Pow(0.5), Sqrt+Reciprocal, 1/Sqrt or Pow(-0.5), casts between float types inside, with or without a constant "
    "weight behind",
    why="The squares leave fp16's range as soon as an activation passes 256, and language models' residuals reach "
    "25,000; one written form even stops the compiler with an error about memory. The operator maps to the NPU's own "
    "RMS norm, which was right for rows with peaks from 0.001 to 26,000. It needs opset 23, to which the graph is "
    "raised where every operator keeps its meaning; the same sums are taken in the same precision, so results differ "
    "in the last bits of float32.",
    default=True,
    apply=apply,
)
