"""Constant nodes become initializers: one form for constants, which folding and the canonical order understand."""

from __future__ import annotations

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.weights import make_raw


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
