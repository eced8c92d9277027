"""Rows of attention scores that a mask may mask whole, as left padding does."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.reduction import axes_arguments
from qnn.prepare.rewrites.softmax_mask import is_switch
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "masked-rows"
# A mask's number is at most this; half of it tells a masked place from one that is not.
_MASK, _ALIVE = -9e3, -5e3
# From here on a score of less than 4 is lost beside the mask in float32 (and one of 32 beside -1e9).
_ABSORBS = -1e8
_PASSING = frozenset({"Cast", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_DEPTH = 8


@dataclass(frozen=True)
class _Sum:
    """The terms under a softmax: scores, masks, and the largest number of the masks."""

    scores: tuple[str, ...]
    masks: tuple[str, ...]
    low: float


@dataclass(frozen=True)
class _Mask:
    """The sum of masks less its largest of each row, and 1 for rows with a place that is not masked, else 0."""

    relative: str
    alive: str


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    made: dict[tuple[str, ...], _Mask] = {}
    changes: list[Change] = []
    for softmax in view.nodes("Softmax"):
        if not _is_over_rows(view, softmax) or view.is_quantized(softmax):
            continue
        node = view.maker(softmax.input[0], "Add", "Where")
        found = None if node is None else _sum_of(view, node)
        if node is None or found is None:
            continue
        guard = _guard(view, softmax) if isinf(found.low) else None
        if node.op_type == "Where" and guard is None:
            continue  # all places of such a row have the same number already
        mask = made.get(found.masks) or _mask(view, found.masks)
        made[found.masks] = mask
        if node.op_type == "Add":
            _replace(view, node, found, mask)
        if guard is not None:
            view.replace(guard, "Mul", [softmax.output[0], mask.alive])
        changes.append(applied(NAME, softmax, "a row that is masked whole is what it is in float32"))
    return changes


def _is_over_rows(view: GraphView, softmax: NodeProto) -> bool:
    shape = view.shape(softmax.input[0])
    axis = attribute(softmax, "axis", -1 if view.opset() >= 13 else 1)
    return (
        view.dtype(softmax.input[0]) == TensorProto.FLOAT and bool(shape) and axis % len(shape or "x") == _last(shape)
    )


def _last(shape: tuple[int, ...] | None) -> int:
    return len(shape or ()) - 1


def _sum_of(view: GraphView, node: NodeProto) -> _Sum | None:
    """The terms of a sum, where some are masks that may mask a row whole."""
    scores: list[str] = []
    masks: list[str] = []
    lows: list[float] = []
    for term in _terms(view, node, _DEPTH):
        low = _low(view, term, _DEPTH)
        if low is not None and low <= _MASK:
            masks.append(term)
            lows.append(low)
            continue
        where = view.maker(term, "Where")
        chosen = None if where is None else _chosen(view, where)
        if where is None or chosen is None:
            scores.append(term)
            continue
        low = float(view.scalar(where.input[3 - chosen]) or 0.0)
        if low > _ABSORBS and node.op_type == "Add":
            return None  # it has no scores at masked places, where the other masks have them
        scores.append(str(where.input[chosen]))
        masks.append(term)  # made into a mask of its own by _mask
        lows.append(low)
    shapes = [view.shape(mask) for mask in masks]
    if not scores or not masks or not all(shapes) or all(_is_of_keys(shape or ()) for shape in shapes):
        return None
    constants = [array for mask in masks if (array := _constant(view, mask)) is not None]
    if len(constants) == len(masks) and not _is_row_masked(constants):
        return None
    return _Sum(tuple(scores), tuple(masks), max(lows))


def _is_of_keys(shape: tuple[int, ...]) -> bool:
    """Whether a mask is the same for every row: it masks all of them whole (nothing but padding) or none."""
    return len(shape) < 2 or shape[-2] == 1


def _terms(view: GraphView, node: NodeProto, depth: int) -> list[str]:
    """The terms of nested Adds whose results nothing else reads; a Where is one term."""
    if node.op_type == "Where" or depth == 0:
        return [str(node.output[0])]
    out = []
    for name in node.input:
        maker = view.maker(name, "Add")
        inner = maker is not None and len(view.users(name)) == 1 and not view.is_output(name)
        mask = _low(view, str(name), _DEPTH)
        out += _terms(view, maker, depth - 1) if maker is not None and inner and mask is None else [str(name)]
    return out


def _low(view: GraphView, name: str, depth: int) -> float | None:
    """The masking number of a tensor that holds nothing but it (or several) and 0; 0 for zeros; None for others."""
    array = view.constant(name)
    if array is not None:
        fits = array.dtype.kind == "f" and array.size and bool(((array == 0) | (array <= _MASK)).all())
        return float(array.max() if array.max() < 0 else array.min()) if fits else None
    node = view.maker(name)
    if node is None or depth == 0 or node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Where":
        lows = [_low(view, str(given), depth - 1) for given in node.input[1:]]
        return None if None in lows else min(low for low in lows if low is not None)
    if node.op_type == "Mul":
        for position in (0, 1):
            factor = view.scalar(node.input[1 - position])
            if factor is not None and factor <= _MASK and is_switch(view, node.input[position]):
                return factor
        return None
    return _low(view, str(node.input[0]), depth - 1) if node.op_type in _PASSING else None


def _chosen(view: GraphView, where: NodeProto) -> int | None:
    """Which input of a Where is the scores, when the other one is a masking number."""
    for position in (1, 2):
        other = view.scalar(where.input[3 - position])
        if other is not None and other <= _MASK and not view.is_constant(where.input[position]):
            return position
    return None


def _constant(view: GraphView, mask: str) -> Array | None:
    """The mask, where it is a constant, or a choice of the scores by a constant."""
    where = view.maker(mask, "Where")
    condition = None if where is None else view.constant(where.input[0])
    chosen = None if where is None else _chosen(view, where)
    if where is None or condition is None or chosen is None:
        return view.constant(mask)
    return numpy.where(condition == (chosen == 1), 0.0, _MASK)


def _is_row_masked(constants: list[Array]) -> bool:
    total = constants[0]
    with numpy.errstate(over="ignore"):
        for array in constants[1:]:
            total = total + array
    return bool((total.max(axis=-1) <= _MASK).any()) if total.ndim else bool(total <= _MASK)


def _guard(view: GraphView, softmax: NodeProto) -> NodeProto | None:
    """The Where(IsNaN(p), 0, p) behind a softmax p, if it is there."""
    made = softmax.output[0]
    for user in view.users(made):
        for where in view.users(user.output[0]) if user.op_type == "IsNaN" else ():
            zero = view.scalar(where.input[1]) if where.op_type == "Where" else None
            if zero == 0.0 and where.input[0] == user.output[0] and where.input[2] == made:
                return where
    return None


def _mask(view: GraphView, masks: tuple[str, ...]) -> _Mask:
    given = []
    for name in masks:
        where = view.maker(name, "Where")
        chosen = None if where is None else _chosen(view, where)
        if where is None or chosen is None or _low(view, name, _DEPTH) is not None:
            given.append(name)
            continue
        zero = view.add_constant(f"{name}_zero", numpy.zeros(1, numpy.float32))
        ends = [zero, str(where.input[2])] if chosen == 1 else [str(where.input[1]), zero]
        given.append(view.add_node("Where", [str(where.input[0]), *ends], f"{name}_mask"))
    total = given[0]
    for name in given[1:]:
        total = view.add_node("Add", [total, name], f"{masks[0]}_both")
    further, axes = axes_arguments(view, (-1,))
    most = view.add_node("ReduceMax", [total, *further], f"{masks[0]}_most", keepdims=1, **axes)
    bound = view.add_constant(f"{masks[0]}_bound", numpy.asarray(_ALIVE, numpy.float32))
    alive = view.add_node("Greater", [most, bound], f"{masks[0]}_kept")
    return _Mask(
        view.add_node("Sub", [total, most], f"{masks[0]}_relative"),
        view.add_node("Cast", [alive], f"{masks[0]}_alive", to=TensorProto.FLOAT),
    )


def _replace(view: GraphView, node: NodeProto, found: _Sum, mask: _Mask) -> None:
    scores = found.scores[0]
    for name in found.scores[1:]:
        scores = view.add_node("Add", [scores, name], f"{node.output[0]}_scores")
    if found.low <= _ABSORBS and found.low > -inf:
        scores = view.add_node("Mul", [scores, mask.alive], f"{node.output[0]}_alive")
    view.replace(node, "Add", [scores, mask.relative])


REWRITE = Rewrite(
    name=NAME,
    title="Rows that a mask may mask whole keep their meaning",
    pattern="Softmax over the last axis of a sum with masks (Where of 0 and at most -9,000, such a number multiplied "
    "by 0 or 1, or Where of the scores themselves) that are computed in the graph and differ from row to row, or that "
    "mask a row whole; "
    "Where(IsNaN(p), 0, p) behind it",
    why="With left padding some rows have no place that is not masked. In float32 a mask of -1e9 or -3.4e38 swallows "
    "the scores of such a row, which gives equal shares; with the numbers that fp16 has (see softmax-mask) the scores "
    "stay or are rounded. Softmax does not change when a number is subtracted from a whole row, so the mask is taken "
    "less its largest number of the row, which changes nothing in other rows, and the scores of rows masked "
    "whole are multiplied by 0. Under a mask of -10,000 the scores count in float32 as well, and stay. Where a test "
    "for NaN (-inf in the whole row) makes the row 0, it is multiplied by 0. The mask is computed once for all layers.",
    default=True,
    apply=_apply,
)
