"""Constants that two DequantizeLinear read with different parameters."""

from __future__ import annotations

from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "quantized-own-constants"
_Parameters = tuple[object, ...]


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for tensor in list(view.graph.initializer):
        users = view.users(tensor.name)
        readers = [node for node in users if node.op_type == "DequantizeLinear" and node.input[0] == tensor.name]
        # The compiler computes biases (int32) from the layer's own scales and needs no copy.
        if len(readers) < 2 or tensor.data_type == TensorProto.INT32:
            continue
        owned = {_parameters(view, readers[0]): str(tensor.name)}
        for node in readers[1:]:
            parameters = _parameters(view, node)
            if parameters not in owned:
                owned[parameters] = view.add_copy(tensor, f"{tensor.name}_of_{node.output[0]}")
                changes.append(applied(NAME, node, f"a copy of {tensor.name!r}, which others read with another scale"))
            if owned[parameters] != node.input[0]:
                view.set_input(node, 0, owned[parameters])
    return changes


def _parameters(view: GraphView, node: NodeProto) -> _Parameters:
    """What tells two quantizations apart: values where they are constants, names elsewhere; and the axis."""
    given: list[object] = [attribute(node, "axis", 1), attribute(node, "block_size", 0)]
    for name in node.input[1:]:
        array = view.constant(name)
        given.append(str(name) if array is None else (array.shape, array.tobytes()))
    return tuple(given)


REWRITE = Rewrite(
    name=NAME,
    title="A constant has one quantization",
    pattern="an integer constant (other than a bias) that several DequantizeLinear read with different scales or zero "
    "points",
    why="A tensor has one scale in QNN, and the compiler takes one reader's for all: the constants 3 and 6 of a "
    "HardSwish, both stored as 255, came out equal and the result doubled. Exporters, quantizers and simplifying share "
    "equal constants. A copy for each scale computes the same.",
    default=True,
    apply=_apply,
)
