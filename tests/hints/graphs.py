"""Small graphs as the rules see them, compiled or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from qnn.chips.table import load_table
from qnn.hints.qnn_graph import QnnGraph, QnnNode
from qnn.hints.seen import Seen
from qnn.prepare.rewrites.view import GraphView

SHAPE = [1, 16, 64]


def node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [output], name=output, **attributes)


def number(name: str, value: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.float32(value), name)


def model(
    nodes: Sequence[onnx.NodeProto], constants: Sequence[onnx.TensorProto] = (), shape: Sequence[int] = SHAPE
) -> onnx.ModelProto:
    """x → nodes → y, both of one shape."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        list(nodes),
        "g",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
        list(constants),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def seen(
    onnx_model: onnx.ModelProto | None = None, qnn: QnnGraph | None = None, soc: str = "SM8650", **changes: Any
) -> Seen:
    """What a rule looks at; SM8650 has 8 MB of VTCM."""
    facts: dict[str, Any] = {
        "view": GraphView(onnx_model or model([node("Relu", ["x"], "y")])),
        "qnn": qnn or QnnGraph(),
        "soc": load_table().lookup(soc),
        "float_graph": True,
        "spill_bytes": 0,
        "filled": (),
        "integer_chips": (),
    }
    return Seen(**{**facts, **changes})


def op(kind: str, inputs: Sequence[str], output: str, nodes: Sequence[str] = (), flags: Sequence[str] = ()) -> QnnNode:
    """One QNN operator named as its output."""
    return QnnNode(output, kind, tuple(inputs), (output,), tuple(nodes), tuple(flags))


def conv(name: str, into: int, made: int, size: int = 56, kind: str = "Conv2d") -> tuple[QnnNode, dict[str, Any]]:
    """A 3×3 convolution, and the dimensions of its tensors."""
    weight = (3, 3, 1 if kind == "DepthWiseConv2d" else into, made)
    dims = {f"{name}_in": (1, size, size, into), f"{name}_w": weight, name: (1, size, size, made)}
    return op(kind, [f"{name}_in", f"{name}_w"], name, [f"{name}_node"]), dims
