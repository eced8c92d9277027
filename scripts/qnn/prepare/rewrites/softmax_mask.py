"""Attention masks with numbers that fp16 has not."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "softmax-mask"
MASKED = -1e4
# Only numbers that cannot be meant as scores are masks: fp16 ends at -65504.
_BEYOND = -3e4
_PASSING = ("Cast", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
_DEPTH = 8


def apply(model: ModelProto) -> list[Change]:
    """Make the large negative constants that are added to, or put into, a softmax's input -10,000."""
    view = GraphView(model)
    changes: list[Change] = []
    done: set[int] = set()
    for softmax in view.nodes("Softmax"):
        if view.is_float(softmax.input[0]) and not view.is_quantized(softmax):
            _scores(view, softmax, 0, changes, done, _DEPTH)
            changes += _drop_guard(view, softmax)
    return changes


def _drop_guard(view: GraphView, softmax: NodeProto) -> list[Change]:
    """Where(IsNaN(p), 0, p) behind a softmax p is p: with finite masks a softmax is never NaN."""
    made = softmax.output[0]
    changes = []
    for guard in view.users(made):
        if guard.op_type != "IsNaN":
            continue
        for where in view.users(guard.output[0]):
            if where.op_type == "Where" and where.input[0] == guard.output[0] and where.input[2] == made:
                new = view.replace(where, "Identity", [made])
                changes.append(applied(NAME, new, "a softmax without -inf is never NaN, so nothing is replaced"))
    return changes


def _scores(view: GraphView, node: NodeProto, index: int, changes: list[Change], done: set[int], depth: int) -> None:
    """Look for masks in what reaches one input of a node on the way to a softmax."""
    name = node.input[index]
    if view.is_constant(name):
        _constant(view, node, index, changes)
        return
    maker = view.maker(name)
    if maker is None or depth == 0 or id(maker) in done or maker.domain not in ("", "ai.onnx"):
        return
    done.add(id(maker))
    if maker.op_type == "Add":
        for position in (0, 1):
            _scores(view, maker, position, changes, done, depth - 1)
    elif maker.op_type == "Where":
        for position in (1, 2):
            _scores(view, maker, position, changes, done, depth - 1)
    elif maker.op_type == "Mul":
        _product(view, maker, changes)
    elif _is_less_its_largest(view, maker) or (maker.op_type in _PASSING and view.is_float(maker.input[0])):
        _scores(view, maker, 0, changes, done, depth - 1)


def _is_less_its_largest(view: GraphView, node: NodeProto) -> bool:
    """Whether a node is a mask less its largest number of each row, as masked-rows writes it."""
    most = view.maker(node.input[1], "ReduceMax") if node.op_type == "Sub" else None
    return most is not None and most.input[0] == node.input[0]


def _constant(view: GraphView, node: NodeProto, index: int, changes: list[Change]) -> None:
    array = view.constant(node.input[index])
    if array is not None and array.dtype.kind == "f" and bool((array < _BEYOND).any()):
        least = float(array.min())
        view.set_input(node, index, view.add_constant(f"{node.input[index]}_masked", _raised(array)))
        changes.append(applied(NAME, node, f"{least:.3g} in a mask is {MASKED:g}: fp16 ends at -65504"))


def _raised(array: Array) -> Array:
    return numpy.where(array < _BEYOND, numpy.asarray(MASKED, array.dtype), array).astype(array.dtype)


def _product(view: GraphView, node: NodeProto, changes: list[Change]) -> None:
    """(1 - mask) · -3.4e38: the same with -10,000 when the first factor is 0 or 1."""
    for position in (0, 1):
        factor = view.scalar(node.input[1 - position])
        if factor is None or factor >= _BEYOND:
            continue
        if not is_switch(view, node.input[position]):
            changes.append(refused(NAME, node, f"{factor:.3g} is multiplied by what may be other than 0 and 1"))
            return
        view.set_input(
            node, 1 - position, view.add_scalar_like(f"{node.output[0]}_by", MASKED, node.input[1 - position])
        )
        changes.append(applied(NAME, node, f"a mask of {factor:.3g} is {MASKED:g}: fp16 ends at -65504"))
        return


def is_switch(view: GraphView, name: str, depth: int = _DEPTH) -> bool:
    """Whether the tensor of name `name` holds 0 and 1 only: whole numbers within 0 and 1."""
    return interval(view, name) in ((0.0, 1.0), (0.0, 0.0), (1.0, 1.0)) and _is_whole(view, name, depth)


def _is_whole(view: GraphView, name: str, depth: int) -> bool:
    array = view.constant(name)
    if array is not None:
        return bool((array == numpy.trunc(array)).all()) if array.dtype.kind == "f" else array.dtype.kind in "iub"
    if not view.is_float(name):
        return True
    node = view.maker(name)
    if node is None or depth == 0:
        return False
    if node.op_type == "Cast":
        return _is_whole(view, node.input[0], depth - 1)
    if node.op_type in ("Sub", "Mul", "Add", "Neg") or node.op_type in _PASSING or node.op_type in ("Gather", "Concat"):
        inputs = node.input if node.op_type in ("Sub", "Mul", "Add", "Concat") else node.input[:1]
        return all(_is_whole(view, given, depth - 1) for given in inputs)
    return node.op_type in ("Floor", "Round", "Ceil", "Sign") and attribute(node, "to") is None


REWRITE = Rewrite(
    name=NAME,
    title="Attention masks of -3.4e38, -1e9 or -inf become -10,000",
    pattern="on the way into a Softmax, through Add, Where and reshapes: constants below -30,000; such a constant "
    "multiplied by what can only be 0 or 1; Where(IsNaN(p), 0, p) behind the Softmax",
    why="fp16 ends at -65,504; what such numbers become there depends on the chip (a mask of the smallest float fed at "
    "run time is wrong on v81), and -inf minus -inf is no number. exp(-10,000 + s) is 0 in float32 for every score s "
    "of less than 9,000, as exp(-3.4e38 + s) is, so every row with a place that is not masked is the same bit for "
    "bit. Rows that are masked whole are what masked-rows makes of them.",
    default=True,
    apply=apply,
)
