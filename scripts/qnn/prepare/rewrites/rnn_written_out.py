"""RNN as MatMul, Add and its activation, step by step."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.lstm_written_out import MOST_STEPS, first_state, split
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "rnn-written-out"
_W, _R, _B, _LENGTHS, _H = 1, 2, 3, 4, 5
_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("RNN"):
        shape = view.shape(node.input[0])
        why = "the shape of its input is not known" if shape is None else _obstacle(view, node, shape)
        if shape is None or why:
            changes.append(refused(NAME, node, why))
            continue
        _write_out(view, node, shape)
        changes.append(applied(NAME, node, f"{shape[0]} steps of MatMul and its activation"))
    return changes


def _given(node: NodeProto, place: int) -> str:
    return str(node.input[place]) if len(node.input) > place else ""


def _obstacle(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> str:
    """Why a node cannot be written out, or an empty string."""
    odd = [name for name in ("clip", "layout") if attribute(node, name)]
    if odd or _given(node, _LENGTHS):
        return f"it has {', '.join(odd) or 'sequence lengths'}"
    if not set(_activations(node)) <= set(_ACTIVATIONS):
        return f"its activations are {', '.join(_activations(node))}"
    if shape[0] > MOST_STEPS:
        return f"it has {shape[0]} steps, more than {MOST_STEPS}"
    weights = [_given(node, place) for place in (_W, _R, _B)]
    return "its weights are no constants" if any(name and view.constant(name) is None for name in weights) else ""


def _activations(node: NodeProto) -> list[str]:
    ways = 2 if attribute(node, "direction", b"") == b"bidirectional" else 1
    return [text.decode().lower() for text in attribute(node, "activations", [b"Tanh"] * ways)]


def _write_out(view: GraphView, node: NodeProto, shape: tuple[int, ...]) -> None:
    steps, batch, inputs = shape
    name = next(str(output) for output in node.output if output)
    flat = reshaped(view, node.input[0], [steps * batch, inputs], f"{name}_flat")
    backwards = {b"forward": [False], b"reverse": [True], b"bidirectional": [False, True]}
    directions = backwards[attribute(node, "direction", b"forward")]
    every = [_direction(view, node, flat, shape, place, backward=back) for place, back in enumerate(directions)]
    hidden, title = int(attribute(node, "hidden_size")), node.name
    outputs = [str(output) for output in node.output]
    view.remove(node)
    if outputs[0]:
        rows = [reshaped(view, h, [1, 1, batch, hidden], f"{h}_row") for step in zip(*every, strict=True) for h in step]
        joined = view.add_node("Concat", rows, f"{name}_rows", axis=0)
        sizes = view.add_constant(f"{name}_shape", numpy.array([steps, len(every), batch, hidden]))
        view.put("Reshape", [joined, sizes], [outputs[0]], title)
    if len(outputs) > 1 and outputs[1]:
        last = [states[0 if back else -1] for states, back in zip(every, directions, strict=True)]
        rows = [reshaped(view, h, [1, batch, hidden], f"{h}_last") for h in last]
        view.put("Concat", rows, [outputs[1]], "" if outputs[0] else title, axis=0)


def _direction(
    view: GraphView, node: NodeProto, flat: str, shape: tuple[int, ...], place: int, *, backward: bool
) -> list[str]:
    """The hidden state [batch, hidden] of every step of one direction, in the input's order."""
    wanted = f"{next(output for output in node.output if output)}_{place}"
    weights, again, bias = (view.constant(_given(node, which)) for which in (_W, _R, _B))
    assert weights is not None
    assert again is not None
    into = view.add_constant(f"{wanted}_w", numpy.ascontiguousarray(weights[place].T))
    back = view.add_constant(f"{wanted}_r", numpy.ascontiguousarray(again[place].T))
    shares = view.add_node("MatMul", [flat, into], f"{wanted}_shares")
    if bias is not None:
        both = bias[place].reshape(2, -1).sum(axis=0)
        shares = view.add_node("Add", [shares, view.add_constant(f"{wanted}_b", both)], f"{wanted}_biased")
    parts = split(view, shares, [shape[1]] * shape[0], 0, f"{wanted}_step")
    hidden, activation = first_state(view, node, _H, place, wanted), _ACTIVATIONS[_activations(node)[place]]
    every: list[str] = []
    for part in reversed(parts) if backward else parts:
        again_in = [part, view.add_node("MatMul", [hidden, back], f"{part}_r")] if hidden else []
        total = view.add_node("Add", again_in, f"{part}_z") if again_in else part
        hidden = view.add_node(activation, [total], f"{part}_h")
        every.append(hidden)
    return every[::-1] if backward else every


REWRITE = Rewrite(
    name=NAME,
    title="RNN written out",
    pattern=f"RNN of at most {MOST_STEPS} steps with constant weights and Tanh, Relu or Sigmoid",
    why="The compiler has no RNN, only LSTM and GRU. A step is a MatMul of the last state, Add and the activation.",
    default=True,
    apply=_apply,
)
