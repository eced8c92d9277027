"""From what tensors hold to what is wrong with it. Pure: looks at a graph and at numbers, runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx import ModelProto, NodeProto

from qnn.prepare.rewrites.view import GraphView
from qnn.ranges.facts import Kind
from qnn.ranges.statistics import Statistics

FP16_MAX = 65504.0
FP16_NORMAL = 2.0**-14
# HTP answers Exp and Softplus below this with numbers up to ±131,008 (right at -87, wrong at -88.5).
EXP_LOWEST = -88.0
# Log of less is -7.625, whatever it is.
LOG_LOWEST = 3e-8
# fp16 has 11 bits: a running sum this many times its largest term adds it with less than four of them.
COARSE = 256.0
# A small constant that fp16 rounds by more than this share is another number.
CONSTANT_LOSS = 0.05

_PASSING = frozenset(
    {
        "Cast", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice",
        "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    """A place where HTP would have another number: a tensor, made by `node` (None for inputs and constants).

    `value` is the number that says it best. `root` is the site that causes it, by its tensor: a sum of squares that
    overflowed overflows too.
    """

    kind: Kind
    tensor: str
    node: NodeProto | None
    value: float
    root: str

    @property
    def is_root(self) -> bool:
        """Whether nothing before it is to blame."""
        return self.root == self.tensor


def sites(model: ModelProto, stats: Mapping[str, Statistics], losses: Mapping[str, float]) -> list[Site]:
    """Every site of a graph, in the order of its nodes, inputs and constants first.

    `stats` is of every float tensor, initializers and inputs too; `losses` of each initializer the share that fp16
    rounds away.
    """
    view = GraphView(model)
    found: list[Site] = []
    roots: dict[str, str] = {}
    given = (*(value.name for value in model.graph.input), *(tensor.name for tensor in model.graph.initializer))
    for name in given:
        if _is_folded(view, name):
            continue
        found += _of_given(name, stats.get(name), losses.get(name, 0.0))
        if name in stats and _peak(stats[name]) > FP16_MAX:
            roots[name] = name
    for node in model.graph.node:
        found += _of_node(view, node, stats, roots)
    return found


def _is_folded(view: GraphView, name: str) -> bool:
    """Whether the compiler only computes with a constant and keeps none of it: a variance of 9.8e7 is PP-OCR's."""
    users = view.users(name)
    return bool(users) and all(user.op_type == "BatchNormalization" and user.input[0] != name for user in users)


def _peak(of: Statistics) -> float:
    return float("inf") if of.not_finite > of.nan else max(abs(of.minimum), abs(of.maximum)) if _seen(of) else 0.0


def _seen(of: Statistics) -> bool:
    return of.minimum <= of.maximum


def _of_given(name: str, of: Statistics | None, loss: float) -> Iterator[Site]:
    if of is None:
        return
    if _peak(of) > FP16_MAX:
        yield Site(Kind.OVERFLOW, name, None, _farthest(of), name)
    if loss > CONSTANT_LOSS:
        yield Site(Kind.UNDERFLOW, name, None, of.smallest, name)


def _farthest(of: Statistics) -> float:
    """The number that is furthest out, with its sign; infinite when one is."""
    if not _seen(of):
        return float("inf")
    far = of.minimum if abs(of.minimum) > abs(of.maximum) else of.maximum
    return far if abs(far) > FP16_MAX else float("inf")


def _of_node(
    view: GraphView, node: NodeProto, stats: Mapping[str, Statistics], roots: dict[str, str]
) -> Iterator[Site]:
    given = stats.get(node.input[0]) if node.input else None
    for made in node.output:
        if made not in stats:
            continue
        of = stats[made]
        cause = next((roots[name] for name in node.input if name in roots), None)
        if of.nan and not any(stats[name].nan for name in node.input if name in stats):
            yield Site(Kind.NAN, made, node, float(of.nan), made)
        if _peak(of) > FP16_MAX:
            roots[made] = cause or made
            if not (cause and node.op_type in _PASSING):
                yield Site(Kind.OVERFLOW, made, node, _farthest(of), roots[made])
        if of.tiny and (_feeds_the_sensitive(view, made) or 0 < _peak(of) < FP16_NORMAL):
            yield Site(Kind.UNDERFLOW, made, node, of.smallest, made)
        if given is not None:
            yield from _of_function(node, made, given)
        if node.op_type == "CumSum" and given is not None and _peak(of) > COARSE * _peak(given) > 0:
            yield Site(Kind.COARSE, made, node, _farthest_in(of), made)


def _of_function(node: NodeProto, made: str, given: Statistics) -> Iterator[Site]:
    if node.op_type in ("Exp", "Softplus") and (given.minimum < EXP_LOWEST or given.not_finite > given.nan):
        yield Site(Kind.EXP_LOW, made, node, given.minimum, made)
    if node.op_type == "Log":
        if given.smallest < LOG_LOWEST or given.minimum <= 0:
            yield Site(Kind.LOG_LOW, made, node, max(given.minimum, 0.0), made)
        if given.maximum > FP16_MAX:
            yield Site(Kind.LOG_HIGH, made, node, given.maximum, made)


def _farthest_in(of: Statistics) -> float:
    return of.minimum if abs(of.minimum) > abs(of.maximum) else of.maximum


def _feeds_the_sensitive(view: GraphView, name: str) -> bool:
    """Whether a 0 in the place of a small number becomes a large error: under a root, a fraction, a logarithm."""
    for user in view.users(name):
        if user.op_type in ("Log", "Reciprocal", "Sqrt") or (user.op_type == "Div" and user.input[1] == name):
            return True
        if user.op_type == "Pow" and user.input[0] == name and (view.scalar(user.input[1]) or 0.0) < 1:
            return True
        if user.op_type == "Mul":
            other = view.other_input(user, name)
            scale = None if other is None else view.scalar(other)
            if scale is not None and abs(scale) > 1e3:
                return True
    return False
