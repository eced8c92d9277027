"""Raise the opset of a prepared graph, where every node keeps its meaning.

Written by hand, because onnx's version converter copies all weights through memory and drops what it does not know.
The tables say what the operators' histories say (onnx 1.23, opsets 13 to 23); an operator that changed and is not in
them stops the raise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy
import onnx
from onnx import ModelProto, NodeProto

from qnn.prepare.rewrites.view import GraphView, attribute

# Below this, Softmax, Squeeze, ReduceSum and others mean something else.
LOWEST = 13

# Changed after opset 13 by more element types, by attributes whose default is the old meaning, or by optional inputs.
_SAME = frozenset(
    {
        "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Constant", "ConstantOfShape", "Conv",
        "ConvTranspose", "Cos", "Cosh", "CumSum", "DeformConv", "DequantizeLinear", "Det", "Div", "Dropout", "Elu",
        "Equal", "EyeLike", "Flatten", "GRU", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GreaterOrEqual",
        "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LSTM", "LeakyRelu",
        "LessOrEqual", "LpNormalization", "LpPool", "MaxPool", "Mul", "PRelu", "Pad", "Pow", "QuantizeLinear", "RNN",
        "Relu", "Reshape", "Resize", "Round", "ScatterElements", "ScatterND", "Selu", "Shape", "Sin", "Sinh", "Size",
        "Softplus", "Softsign", "Squeeze", "Sub", "Tan", "ThresholdedRelu", "Transpose", "Unsqueeze", "Where",
    }
)  # fmt: skip
_REDUCE_AXES = frozenset(
    {
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceProd", "ReduceSumSquare",
    }
)  # fmt: skip


def raise_opset(model: ModelProto, wanted: int) -> str | None:
    """Raise the default domain to `wanted` (at most 23), in place; or say which node is in the way and change nothing.

    Expects no subgraphs. The IR version is raised to what the opset needs.
    """
    view = GraphView(model)
    current = view.opset()
    if current >= wanted:
        return None
    if current < LOWEST:
        return f"the graph has opset {current}, and below {LOWEST} operators mean something else"
    steps: list[tuple[Callable[[GraphView, NodeProto], None], NodeProto]] = []
    for node in view.graph.node:
        if node.domain not in ("", "ai.onnx"):
            continue
        before, after = (onnx.defs.get_schema(node.op_type, opset) for opset in (current, wanted))
        if before.since_version == after.since_version or node.op_type in _SAME:
            continue
        step = _STEPS.get(node.op_type)
        if step is None or (node.op_type in _BREAKS and _BREAKS[node.op_type](node)):
            return f"{node.op_type} (node {node.name}) means something else in opset {wanted} than in {current}"
        steps.append((step, node))
    for step, node in steps:
        step(view, node)
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = wanted
    needed = onnx.helper.find_min_ir_version_for(list(model.opset_import), ignore_unknown=True)
    model.ir_version = max(model.ir_version, needed)
    return None


def _axes_to_input(view: GraphView, node: NodeProto) -> None:
    """Opset 18: the axes of a reduction become an input."""
    axes = attribute(node, "axes")
    if axes is None:
        return
    _drop(node, "axes")
    node.input.append(view.add_constant(f"{node.output[0]}_axes", numpy.array(axes, numpy.int64)))


def _split_evenly(_: GraphView, node: NodeProto) -> None:
    """Opset 18: a Split without sizes says into how many."""
    if len(node.input) < 2 or not node.input[1]:
        node.attribute.append(onnx.helper.make_attribute("num_outputs", len(node.output)))


def _grid_mode(_: GraphView, node: NodeProto) -> None:
    """Opset 20: GridSample's modes have other names."""
    mode = attribute(node, "mode", b"bilinear").decode()
    _drop(node, "mode")
    renamed = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    node.attribute.append(onnx.helper.make_attribute("mode", renamed))


def _nothing(_: GraphView, __: NodeProto) -> None:
    """The node stays as it is."""


def _drop(node: NodeProto, name: str) -> None:
    kept = [entry for entry in node.attribute if entry.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


_STEPS: Mapping[str, Callable[[GraphView, NodeProto], None]] = {
    **dict.fromkeys(_REDUCE_AXES, _axes_to_input),
    "AveragePool": _nothing,
    "BatchNormalization": _nothing,
    "GridSample": _grid_mode,
    "Split": _split_evenly,
}
# Forms of an operator with a step that no step covers: the last window of a rounded-up pool, training.
_BREAKS: Mapping[str, Callable[[NodeProto], bool]] = {
    "AveragePool": lambda node: bool(attribute(node, "ceil_mode", 0)),
    "BatchNormalization": lambda node: len(node.output) > 1,
}
