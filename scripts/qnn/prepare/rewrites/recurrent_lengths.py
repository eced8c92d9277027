"""LSTM, GRU and RNN with constant sequence lengths as layers of exactly so many steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
import onnx
from onnx import ModelProto, NodeProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "recurrent-lengths"
_LENGTHS, _STATES = 4, (5, 6)


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("LSTM", "GRU", "RNN"):
        given = node.input[_LENGTHS] if len(node.input) > _LENGTHS else ""
        shape = view.shape(node.input[0])
        if not given or shape is None:
            continue
        lengths = view.constant(given)
        if lengths is None or attribute(node, "layout", 0) or lengths.min() < 1:
            changes.append(refused(NAME, node, "its sequence lengths are not known, or 0"))
        elif (lengths == shape[0]).all():
            view.set_input(node, _LENGTHS, "")
            changes.append(applied(NAME, node, "all sequences are as long as the input"))
        else:
            _cut(view, node, shape, lengths)
            changes.append(applied(NAME, node, f"layers of {', '.join(str(n) for n in lengths.tolist())} steps"))
    return changes


def _cut(view: GraphView, node: NodeProto, shape: tuple[int, ...], lengths: Array) -> None:
    """One layer for all sequences where they are equally long, else one for each; zeros behind its last step."""
    batch = shape[1]
    groups = [list(range(batch))] if len(set(lengths.tolist())) == 1 else [[row] for row in range(batch)]
    made = [_layer(view, node, shape, rows, int(lengths[rows[0]]), number) for number, rows in enumerate(groups)]
    outputs, title = list(node.output), node.name
    view.remove(node)
    for place, output in enumerate(outputs):
        if output:
            parts = [layer[place] for layer in made]
            view.put("Concat", parts, [output], title, axis=2 if place == 0 else 1)
            title = ""


def _layer(
    view: GraphView, node: NodeProto, shape: tuple[int, ...], rows: Sequence[int], steps: int, number: int
) -> list[str]:
    """The outputs of some sequences, Y as long as the node's; an empty name for an output that the node has not."""
    name = next(str(output) for output in node.output if output)
    first = view.add_constant(f"{name}_steps_{number}", numpy.arange(steps, dtype=numpy.int64))
    chosen = view.add_constant(f"{name}_rows_{number}", numpy.array(rows, numpy.int64))

    def of_rows(tensor: str, wanted: str) -> str:
        return tensor if len(rows) == shape[1] else view.add_node("Gather", [tensor, chosen], wanted, axis=1)

    inputs = list(node.input)
    inputs[0] = of_rows(
        view.add_node("Gather", [inputs[0], first], f"{name}_cut_{number}", axis=0), f"{name}_x_{number}"
    )
    inputs[_LENGTHS] = ""
    for place in _STATES:
        if len(inputs) > place and inputs[place]:
            inputs[place] = of_rows(inputs[place], f"{name}_state_{place}_{number}")
    while not inputs[-1]:
        inputs.pop()
    outputs = [view.fresh(f"{output}_{number}") if output else "" for output in node.output]
    written = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    view.put(node.op_type, inputs, outputs, "", **written)
    hidden = view.shape(node.input[2])
    if outputs[0] and steps < shape[0] and hidden is not None:
        dtype = tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
        rest = numpy.zeros((shape[0] - steps, hidden[0], len(rows), hidden[2]), dtype)
        zeros = view.add_constant(f"{name}_rest_{number}", rest)
        outputs[0] = view.add_node("Concat", [outputs[0], zeros], f"{name}_whole_{number}", axis=0)
    return outputs


REWRITE = Rewrite(
    name=NAME,
    title="Constant sequence lengths become layers of so many steps",
    pattern="LSTM, GRU or RNN with constant sequence_lens",
    why="The compiler refuses lengths that differ, and computes all steps where they are equal and shorter than the "
    "input (cosine 0.45 to 0.59). A layer over the first steps alone ends where the sequence ends, in both "
    "directions, and ONNX has zeros behind it.",
    default=True,
    apply=_apply,
)
