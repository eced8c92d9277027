"""Constant nodes become initializers: one form for constants, which folding and the canonical order understand."""

from __future__ import annotations

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.weights import is_far, make_raw


def lift_constants(model: ModelProto) -> None:
    """Replace the Constant nodes of the main graph by initializers of the same name, in place.

    Sparse and string constants stay nodes.
    """
    kept = []
    for node in model.graph.node:
        tensor = _tensor(node) if node.op_type == "Constant" else None
        if tensor is None:
            kept.append(node)
        else:
            model.graph.initializer.append(tensor)
    if len(kept) != len(model.graph.node):
        del model.graph.node[:]
        model.graph.node.extend(kept)


def _tensor(node: NodeProto) -> TensorProto | None:
    if len(node.attribute) != 1:
        return None
    (attribute,) = node.attribute
    tensor = TensorProto()
    match attribute.name:
        case "value":
            tensor.CopyFrom(attribute.t)
        case "value_float":
            tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.float32(attribute.f)))
        case "value_floats":
            tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.array(attribute.floats, numpy.float32)))
        case "value_int":
            tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.int64(attribute.i)))
        case "value_ints":
            tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.array(attribute.ints, numpy.int64)))
        case _:
            return None
    if tensor.data_type == TensorProto.STRING:
        return None
    tensor.name = node.output[0]
    make_raw(tensor)
    return tensor


def select_constantly(model: ModelProto) -> list[Change]:
    """Make a Gather of every Compress whose condition is a constant, so that its size is known, in place.

    Without an axis the input is flattened first.
    """
    held = {tensor.name: tensor for tensor in model.graph.initializer if not is_far(tensor)}
    changes = []
    kept: list[NodeProto] = []
    for node in model.graph.node:
        condition = held.get(node.input[1]) if node.op_type == "Compress" and len(node.input) > 1 else None
        if condition is None:
            kept.append(node)
            continue
        source, made = str(node.input[0]), str(node.output[0])
        axis = next((int(attribute.i) for attribute in node.attribute if attribute.name == "axis"), None)
        if axis is None:
            flat = onnx.numpy_helper.from_array(numpy.array([-1], numpy.int64), f"{made}/flat_shape")
            model.graph.initializer.append(flat)
            kept.append(onnx.helper.make_node("Reshape", [source, flat.name], [f"{made}/flat"]))
            source = f"{made}/flat"
        (chosen,) = numpy.nonzero(onnx.numpy_helper.to_array(condition))
        at = onnx.numpy_helper.from_array(chosen.astype(numpy.int64), f"{made}/chosen")
        model.graph.initializer.append(at)
        kept.append(onnx.helper.make_node("Gather", [source, at.name], [made], name=node.name, axis=axis or 0))
        changes.append(Change("constant-choice", node.name or made, f"{chosen.size} elements are chosen by a constant"))
    if changes:
        del model.graph.node[:]
        model.graph.node.extend(kept)
    return changes
