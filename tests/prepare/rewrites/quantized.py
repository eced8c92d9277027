"""Small graphs between QuantizeLinear and DequantizeLinear, for the tests of their rewrites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

from tests.prepare.graphs import model, node, value

BITS = {8: np.uint8, 16: np.uint16}


def parameters(name: str, low: float, high: float, bits: int = 8) -> dict[str, Any]:
    """NAME_s and NAME_z of a range."""
    scale = np.float32((high - low) / (2**bits - 1))
    return {f"{name}_s": scale, f"{name}_z": BITS[bits](round(-low / float(scale)))}


def through(name: str, output: str, of: str = "") -> list[NodeProto]:
    """Q and DQ of a tensor, with the parameters of `of`."""
    given = [f"{of or name}_s", f"{of or name}_z"]
    return [
        node("QuantizeLinear", [name, *given], [f"{name}_q"]),
        node("DequantizeLinear", [f"{name}_q", *given], [output]),
    ]


def alone(
    op_type: str, shape: Sequence[int], constants: Mapping[str, Any], inputs: Sequence[str], **attributes: Any
) -> ModelProto:
    """One operator between Q/DQ of opset 21; bits=8 unless given; alike: of the same parameters on both sides."""
    bits, alike = attributes.pop("bits", 8), attributes.pop("alike", False)
    nodes = [*through("x", "x_dq"), node(op_type, ["x_dq", *inputs], ["r"], **attributes), *through("r", "y")]
    low, high = (-3.0, 3.0) if alike else (-2.5, 2.75)
    own = {**parameters("x", -3, 3, bits), **parameters("r", low, high, bits), **constants}
    return model(nodes, [value("x", shape)], [value("y", None)], own, opset=21, ir=10)


def between_quantizers(after: ModelProto) -> list[str]:
    """The operators other than Q and DQ; every one of them must read a DQ or a constant and be read by Q alone."""
    graph = after.graph
    quantized = {name for entry in graph.node if entry.op_type == "DequantizeLinear" for name in entry.output}
    read = {name for entry in graph.node if entry.op_type == "QuantizeLinear" for name in entry.input}
    inner = [entry for entry in graph.node if entry.op_type not in ("QuantizeLinear", "DequantizeLinear")]
    assert all(entry.input[0] in quantized and entry.output[0] in read for entry in inner)
    return [entry.op_type for entry in inner]
