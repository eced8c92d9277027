"""LSTM as MatMul, Sigmoid and Tanh, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import Array, GraphView, attribute
from qnn.prepare.weights import bring_near, is_far

NAME = "lstm-written-out"
MOST_STEPS = 256  # some ten nodes each; the compile time grows faster than their number
_SIZES_BY_INPUT = 13  # the opset from which Split takes its sizes as an input
_X, _W, _R, _B, _LENGTHS, _H, _C, _PEEPHOLES = range(8)
_ENTRY, _OUT, _FORGET, _NEW = range(4)  # ONNX's order of the gates


@dataclass(frozen=True)
class _Sizes:
    """Time steps, batch, numbers in an input and in a state."""

    steps: int
    batch: int
    inputs: int
    hidden: int


@dataclass(frozen=True)
class _States:
    """Names of what one direction made: the hidden state of every step in the input's order, and the last states."""

    every: list[str]
    hidden: str
    cell: str


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("LSTM"):
        why = _obstacle(view, node)
        if why:
            changes.append(refused(NAME, node, why))
            continue
        steps = _write_out(view, node)
        changes.append(applied(NAME, node, f"{steps} steps of MatMul, Sigmoid and Tanh"))
    return changes


def _given(node: NodeProto, place: int) -> str:
    return str(node.input[place]) if len(node.input) > place else ""


def _made(node: NodeProto, place: int) -> str:
    return str(node.output[place]) if len(node.output) > place else ""


def _obstacle(view: GraphView, node: NodeProto) -> str:
    """Why a node cannot be written out, or an empty string."""
    shape = view.shape(_given(node, _X))
    odd = [name for name in ("clip", "activations", "input_forget", "layout") if attribute(node, name)]
    extra = {"sequence lengths": _LENGTHS, "peepholes": _PEEPHOLES}
    odd += [name for name, place in extra.items() if _given(node, place)]
    if odd:
        return f"it has {', '.join(odd)}"
    if shape is None:
        return "the shape of its input is not known"
    if shape[0] > MOST_STEPS:
        return (
            f"it has {shape[0]} steps, more than {MOST_STEPS}; give the model fewer at a time, and its states as inputs"
        )
    weights = [_given(node, place) for place in (_W, _R, _B)]
    if any(name and not view.is_constant(name) for name in weights):
        return "its weights are no constants"
    for tensor in view.graph.initializer:
        if tensor.name in weights and is_far(tensor):
            bring_near(tensor)  # they are turned round, and split up
    return ""


def _write_out(view: GraphView, node: NodeProto) -> int:
    shape, recurrent = view.shape(_given(node, _X)), view.constant(_given(node, _R))
    assert shape is not None
    assert recurrent is not None
    sizes = _Sizes(shape[0], shape[1], shape[2], recurrent.shape[2])
    name = next(str(output) for output in node.output if output)
    flat = reshaped(view, _given(node, _X), [sizes.steps * sizes.batch, sizes.inputs], f"{name}_flat")
    direction = attribute(node, "direction", b"forward").decode()
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    states = [_direction(view, node, sizes, flat, place, backward=backward) for place, backward in enumerate(backwards)]
    title = node.name
    view.remove(node)
    _collect(view, node, sizes, states, title)
    return sizes.steps


def _direction(view: GraphView, node: NodeProto, sizes: _Sizes, flat: str, place: int, *, backward: bool) -> _States:
    """All steps of one direction. The input's share of the gates is one MatMul for all of them."""
    wanted = f"{next(output for output in node.output if output)}_{place}"
    weights, again = (_constant(view, node, which)[place] for which in (_W, _R))
    into = view.add_constant(f"{wanted}_w", numpy.ascontiguousarray(weights.T))
    back = view.add_constant(f"{wanted}_r", numpy.ascontiguousarray(again.T))
    shares = view.add_node("MatMul", [flat, into], f"{wanted}_shares")
    if _given(node, _B):
        both = _constant(view, node, _B)[place]
        bias = view.add_constant(f"{wanted}_b", both[: 4 * sizes.hidden] + both[4 * sizes.hidden :])
        shares = view.add_node("Add", [shares, bias], f"{wanted}_biased")
    parts = split(view, shares, [sizes.batch] * sizes.steps, 0, f"{wanted}_step")
    hidden, cell = (first_state(view, node, which, place, wanted) for which in (_H, _C))
    every: list[str] = []
    for part in reversed(parts) if backward else parts:
        gates = (
            part
            if not hidden
            else view.add_node("Add", [part, view.add_node("MatMul", [hidden, back], f"{part}_r")], f"{part}_z")
        )
        entry, out, forget, new = split(view, gates, [sizes.hidden] * 4, 1, f"{part}_gate")
        fresh = view.add_node(
            "Mul", [_sigmoid(view, entry), view.add_node("Tanh", [new], f"{new}_tanh")], f"{part}_new"
        )
        kept = view.add_node("Mul", [_sigmoid(view, forget), cell], f"{part}_kept") if cell else ""
        cell = view.add_node("Add", [kept, fresh], f"{part}_cell") if kept else fresh
        hidden = view.add_node("Mul", [_sigmoid(view, out), view.add_node("Tanh", [cell], f"{part}_tanh")], f"{part}_h")
        every.append(hidden)
    return _States(every[::-1] if backward else every, hidden, cell)


def _collect(view: GraphView, node: NodeProto, sizes: _Sizes, directions: list[_States], title: str) -> None:
    """Put the states together as the node's outputs had them: [steps, directions, batch, hidden], and the last ones."""
    states = [sizes.batch, sizes.hidden]
    if _made(node, 0):
        rows = [
            reshaped(view, name, [1, 1, *states], f"{name}_row")
            for step in zip(*(direction.every for direction in directions), strict=True)
            for name in step
        ]
        flat = view.add_node("Concat", rows, f"{_made(node, 0)}_rows", axis=0)
        shape = view.add_constant(f"{_made(node, 0)}_shape", numpy.array([sizes.steps, len(directions), *states]))
        view.put("Reshape", [flat, shape], [_made(node, 0)], title)
    for place, last in ((1, [d.hidden for d in directions]), (2, [d.cell for d in directions])):
        if _made(node, place):
            rows = [reshaped(view, name, [1, *states], f"{name}_last_{place}") for name in last]
            view.put("Concat", rows, [_made(node, place)], "" if _made(node, 0) or place > 1 else title, axis=0)


def _constant(view: GraphView, node: NodeProto, which: int) -> Array:
    array = view.constant(_given(node, which))
    assert array is not None
    return array


def first_state(view: GraphView, node: NodeProto, which: int, place: int, wanted: str) -> str:
    """One direction's first state [batch, hidden]; empty where it is zeros because none is given."""
    given = _given(node, which)
    if not given:
        return ""
    at = view.add_constant(f"{wanted}_at_{which}", numpy.array(place))
    return view.add_node("Gather", [given, at], f"{wanted}_first_{which}", axis=0)


def _sigmoid(view: GraphView, name: str) -> str:
    return view.add_node("Sigmoid", [name], f"{name}_sigmoid")


def split(view: GraphView, name: str, sizes: list[int], axis: int, wanted: str) -> list[str]:
    if len(sizes) == 1:
        return [name]
    outputs = [view.fresh(f"{wanted}_{number}") for number in range(len(sizes))]
    if view.opset() < _SIZES_BY_INPUT:
        view.put("Split", [name], outputs, "", axis=axis, split=sizes)
    else:
        view.put("Split", [name, view.add_constant(f"{wanted}_sizes", numpy.array(sizes))], outputs, "", axis=axis)
    return outputs


REWRITE = Rewrite(
    name=NAME,
    title="LSTM written out",
    pattern=f"LSTM of at most {MOST_STEPS} steps with constant weights and the default activations",
    why="HTP takes an LSTM as one operator and computes it less well than its parts: over 40 steps of Resemblyzer's "
    "three layers the result has a cosine of 0.995 to the float one, over 160 steps of 0.977; written out it has "
    "0.9999. Off by default: it takes some ten nodes a step and about twice the compile time, and short LSTMs "
    "(silero-vad, DTLN: one step) do not need it.",
    default=False,
    apply=_apply,
)
