"""Attention masks that are fed at run time, with numbers that fp16 has not."""

from __future__ import annotations

from onnx import ModelProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import interval
from qnn.prepare.rewrites.view import GraphView

NAME = "fed-mask-floor"
# Powers of two: in float32 nothing is rounded. 4 · 8192 is the floor.
_SMALLER, _FLOOR, _LARGER = 0.25, -8192.0, 4.0
_MOVES = frozenset(
    {"Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose"}
)
_MAKES = frozenset({"Add", "Concat", "Mul", "Neg", "Sub", "Unsqueeze", "Where"}) | _MOVES
_DEPTH = 12


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for softmax in view.nodes("Softmax", "LogSoftmax"):
        scores = str(softmax.input[0])
        total = view.maker(scores, "Add")
        if total is None or view.is_quantized(softmax) or view.dtype(scores) != TensorProto.FLOAT:
            continue
        fed = [name for name in total.input if is_fed(view, str(name), _DEPTH)]
        if (
            not fed
            or any(view.is_constant(name) for name in total.input)
            or interval(view, scores)[0] >= _FLOOR * _LARGER
        ):
            continue
        small = view.add_node("Mul", [scores, _constant(view, scores, _SMALLER)], f"{scores}_quarter")
        floored = view.add_node("Max", [small, _constant(view, scores, _FLOOR)], f"{scores}_floored")
        large = view.add_node("Mul", [floored, _constant(view, scores, _LARGER)], f"{scores}_masked")
        view.set_input(softmax, 0, large)
        changes.append(applied(NAME, softmax, f"scores are at least {_FLOOR * _LARGER:g}: {fed[0]!r} may be lower"))
    return changes


def _constant(view: GraphView, name: str, value: float) -> str:
    return view.add_scalar_like(f"{name}_by", value, name)


def is_fed(view: GraphView, name: str, depth: int) -> bool:
    """Whether the tensor is a graph input, or made of graph inputs and constants without any layer."""
    node = view.maker(name)
    if node is None:
        return not view.is_constant(name)
    if node.op_type not in _MAKES or depth == 0:
        return False
    needed = node.input[:1] if node.op_type in _MOVES else node.input
    return any(is_fed(view, str(given), depth - 1) for given in needed) and all(
        view.is_constant(given) or is_fed(view, str(given), depth - 1) for given in needed
    )


REWRITE = Rewrite(
    name=NAME,
    title="Scores under a mask that is fed get a floor",
    pattern="Softmax of a sum with a tensor that is a graph input, or is made of graph inputs without any layer; "
    "the other term is no constant",
    why="Apps feed masks of -3.4e38 or -1e9. fp16 ends at -65,504: a row that is masked whole comes out as "
    "zeros, and on v81 every row is wrong. With the scores at least -32,768 (by a product with 1/4, for "
    "Max is wrong on v81 below -65,536) a masked place still has the weight 0, and a row masked whole has"
    " equal shares, as in float32.",
    default=True,
    apply=_apply,
)
