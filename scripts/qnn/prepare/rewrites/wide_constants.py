"""Constants beyond 32 bits that bound, mark or are compared with integers, put at the ends of int32.

HTP takes the low 32 bits of an int64 constant: 2^63 - 1 is -1 to it. Where only the order of numbers matters, the end
of int32 is as good as any number beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import Array, GraphView

NAME = "wide-constants"
_WITH_EQUALITY = 12  # the opset that has LessOrEqual and GreaterOrEqual
_LEAST, _MOST = -(2**31), 2**31 - 1
# The operator that says the same of a constant less or more by 1: x < k is x <= k - 1.
_TURNED = {
    "Less": ("LessOrEqual", -1),
    "LessOrEqual": ("Less", 1),
    "Greater": ("GreaterOrEqual", 1),
    "GreaterOrEqual": ("Greater", -1),
}
_MIRRORED = {
    "Less": "Greater",
    "LessOrEqual": "GreaterOrEqual",
    "Greater": "Less",
    "GreaterOrEqual": "LessOrEqual",
}
_COMPARES = (*_TURNED, "Equal")
# Inputs whose elements come out as they are, by operator; of the others (shapes, positions) the compiler takes 64 bits.
_MOVING: Mapping[str, tuple[int, ...]] = {
    "Expand": (0,), "Flatten": (0,), "Gather": (0,), "GatherElements": (0,), "GatherND": (0,), "OneHot": (2,),
    "Pad": (0, 2), "Reshape": (0,), "ScatterElements": (0, 2), "ScatterND": (0, 2), "Slice": (0,), "Split": (0,),
    "Squeeze": (0,), "Tile": (0,), "Transpose": (0,), "Unsqueeze": (0,), "Where": (1, 2),
}  # fmt: skip
_CHOOSING = frozenset({"Clip", "Max", "Min", "ReduceMax", "ReduceMin", "TopK"})
_ARITHMETIC = frozenset({"Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Mod", "Mul", "Pow", "Sub"})
_ENDING = frozenset({"ArgMax", "ArgMin", *_COMPARES})


def wide_constants(view: GraphView) -> Iterator[tuple[NodeProto, str]]:
    """Each int64 constant beyond 32 bits whose numbers a node computes with or passes on, as (node, tensor)."""
    for node in view.graph.node:
        places = range(len(node.input)) if node.op_type in _ARITHMETIC else _valued(node)
        yield from ((node, str(node.input[index])) for index in places if _is_wide(view, str(node.input[index])))


def farthest(view: GraphView, name: str) -> int:
    """The number of an integer constant that is farthest from 0."""
    values = view.constant(name)
    assert values is not None
    return max((int(value) for value in values.reshape(-1)), key=abs)


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    ordered: set[str] = set()  # tensors in which the end of int32 stands for what is beyond it
    changes = []
    for node in list(view.graph.node):
        wide = [index for index in _valued(node) if _is_wide(view, str(node.input[index]))]
        if not wide:
            ordered.update(_reached(node, ordered))
        elif node.op_type in _COMPARES:
            changes.append(_compare(view, node, wide[0], ordered))
        elif node.op_type in ("Clip", "Max", "Min"):
            changes.append(_bound(view, node, wide, ordered))
        else:
            changes.append(_mark(view, node, wide, ordered))
    return changes


def _valued(node: NodeProto) -> tuple[int, ...]:
    """The inputs whose values as numbers reach the result."""
    if node.domain not in ("", "ai.onnx"):
        return ()
    if node.op_type in ("Concat", "Max", "Min"):
        return tuple(range(len(node.input)))
    if node.op_type in _COMPARES:
        return 0, 1
    places = (1, 2) if node.op_type == "Clip" else _MOVING.get(node.op_type, ())
    return tuple(index for index in places if index < len(node.input))


def _is_wide(view: GraphView, name: str) -> bool:
    values = view.constant(name) if view.dtype(name) == TensorProto.INT64 else None
    return values is not None and bool(((values < _LEAST) | (values > _MOST)).any())


def _compare(view: GraphView, node: NodeProto, index: int, ordered: set[str]) -> Change:
    """x compared with a constant: what no number of 32 bits passes, or every one."""
    values = view.constant(str(node.input[index]))
    assert values is not None  # it is wide
    other = str(node.input[1 - index])
    if other in ordered:
        view.set_input(node, index, _ended(view, node, index))
        return applied(NAME, node, _detail(node, index))
    if node.op_type == "Equal":
        ends = _ended(view, node, index)
        possible = view.add_constant(f"{node.output[0]}_possible", (values >= _LEAST) & (values <= _MOST))
        equal = view.add_node("Equal", [other, ends], f"{node.output[0]}_equal")
        return applied(NAME, view.replace(node, "And", [equal, possible]), "no number of 32 bits equals it")
    operator = node.op_type if index == 1 else _MIRRORED[node.op_type]  # x on the left
    above, below = bool((values > _MOST).any()), bool((values < _LEAST).any())
    if above and below:
        return refused(NAME, node, f"{node.input[index]} has values beyond both ends of 32 bits")
    # The end itself has to fall on the right side: x < 2^31 holds for 2^31 - 1, which is x <= 2^31 - 1.
    if operator in (("Less", "GreaterOrEqual") if above else ("LessOrEqual", "Greater")):
        if view.opset() < _WITH_EQUALITY:
            return refused(NAME, node, f"opset {view.opset()} has no comparison that holds for equal numbers")
        operator, step = _TURNED[operator]
        if (values == (_LEAST if step < 0 else _MOST)).any():
            return refused(NAME, node, f"{node.input[index]} has values beyond one end of 32 bits, and the other end")
        values = values + step
    ends = view.add_constant(f"{node.output[0]}_end", numpy.clip(values, _LEAST, _MOST))
    return applied(NAME, view.replace(node, operator, [other, ends]), "compared with the end of 32 bits")


def _bound(view: GraphView, node: NodeProto, wide: list[int], ordered: set[str]) -> Change:
    """Min with what is above every number of 32 bits bounds nothing; Max with it is that number."""
    for index in wide:
        values = view.constant(str(node.input[index]))
        assert values is not None  # it is wide
        free = node.op_type == "Min" or (node.op_type == "Clip" and index == 2)  # its upper end bounds nothing
        binds = (values < _LEAST).any() if free else (values > _MOST).any()
        if binds and (reader := _arithmetic(view, node)) is not None:
            return refused(NAME, node, _binding(view, node, index, reader))
    record = applied(NAME, node, _detail(node, wide[0]))
    for index in wide:
        view.set_input(node, index, _ended(view, node, index))
    ordered.update(node.output)
    return record


def _mark(view: GraphView, node: NodeProto, wide: list[int], ordered: set[str]) -> Change:
    """A number that marks a place, such as 2^63 - 1 where a minimum is to pass by: it may only be ordered."""
    reader = _arithmetic(view, node)
    if reader is not None:
        return refused(NAME, node, _binding(view, node, wide[0], reader))
    record = applied(NAME, node, _detail(node, wide[0]))
    for index in wide:
        view.set_input(node, index, _ended(view, node, index))
    ordered.update(node.output)
    return record


def _arithmetic(view: GraphView, node: NodeProto) -> str | None:
    """What uses elements of the result other than by their order, before a choice among them is made."""
    seen: set[str] = set()
    waiting = [str(name) for name in node.output if name]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if view.is_output(name):
            return f"the output {name}"
        for user in view.users(name):
            if user.op_type in _CHOOSING or user.op_type in _ENDING:
                continue
            valued = _valued(user)
            if any(other == name and index not in valued for index, other in enumerate(user.input)):
                return f"node {user.name} ({user.op_type})"
            waiting += [str(made) for made in user.output if made]
    return None


def _reached(node: NodeProto, ordered: set[str]) -> Iterator[str]:
    """The outputs that hold elements of ordered tensors."""
    if node.op_type in _CHOOSING:
        if any(name in ordered for name in node.input):
            yield from node.output[:1]
    elif any(node.input[index] in ordered for index in _valued(node)):
        yield from () if node.op_type in _COMPARES else node.output


def _ended(view: GraphView, node: NodeProto, index: int) -> str:
    values = view.constant(str(node.input[index]))
    assert values is not None  # it is wide
    ends: Array = numpy.clip(values, _LEAST, _MOST)
    return view.add_constant(f"{node.output[0]}_end_{index}", ends)


def _detail(node: NodeProto, index: int) -> str:
    return f"{node.input[index]} is cut at the end of 32 bits"


def _binding(view: GraphView, node: NodeProto, index: int, reader: str) -> str:
    name = str(node.input[index])
    return f"the constant {name} holds {farthest(view, name)}, of which HTP has the low 32 bits, and {reader} uses it"


REWRITE = Rewrite(
    name=NAME,
    title="Integer constants beyond 32 bits are put at the end of 32",
    pattern="Clip, Min, Max and comparisons of int64 with a constant beyond 32 bits; such a constant that Where, "
    "Concat, Pad or a scatter puts among other numbers of which only the order matters behind it (ReduceMin, TopK …)",
    why="HTP takes the low 32 bits of a constant, so 2^63 - 1 is -1: Min(x, 2^40) is 0, and a minimum that is to pass "
    "masked places by finds them. The end of 32 bits bounds, and stands behind, every number of 32 bits as well, and "
    "HTP has no wider ones. A minimum over masked places alone is 2^31 - 1 in place of 2^63 - 1.",
    default=True,
    apply=_apply,
)
