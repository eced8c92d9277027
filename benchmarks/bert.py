"""A BERT-base-sized ONNX file made from nothing: 12 layers, 768 wide, 12 heads, sequence 128, seeded weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, SEQUENCE, VOCABULARY = 12, 768, 12, 128, 30522


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(0)

    def weight(self, name: str, *shape: int, scale: float = 0.02) -> str:
        self.weights.append(numpy_helper.from_array(self._random.normal(0, scale, shape).astype(np.float32), name))
        return name

    def constant(self, name: str, values: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def add(self, op: str, *inputs: str, out: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=out, **attributes))
        return out

    def linear(self, x: str, name: str, inner: int, outer: int) -> str:
        product = self.add("MatMul", x, self.weight(f"{name}.w", inner, outer), out=f"{name}.mm")
        return self.add("Add", product, self.weight(f"{name}.b", outer), out=f"{name}.out")

    def norm(self, x: str, name: str) -> str:
        ones = self.constant(f"{name}.gamma", np.ones(WIDTH, np.float32))
        return self.add(
            "LayerNormalization", x, ones, self.weight(f"{name}.beta", WIDTH), out=f"{name}.out", epsilon=1e-5
        )

    def heads(self, x: str, name: str, order: list[int]) -> str:
        split = self.add("Reshape", x, "split", out=f"{name}.split")
        return self.add("Transpose", split, out=f"{name}.heads", perm=order)

    def layer(self, x: str, name: str) -> str:
        q = self.heads(self.linear(x, f"{name}.q", WIDTH, WIDTH), f"{name}.q", [0, 2, 1, 3])
        k = self.heads(self.linear(x, f"{name}.k", WIDTH, WIDTH), f"{name}.k", [0, 2, 3, 1])
        v = self.heads(self.linear(x, f"{name}.v", WIDTH, WIDTH), f"{name}.v", [0, 2, 1, 3])
        scaled = self.add("Mul", self.add("MatMul", q, k, out=f"{name}.qk"), "scale", out=f"{name}.scores")
        weights = self.add("Softmax", scaled, out=f"{name}.softmax", axis=-1)
        mixed = self.add("MatMul", weights, v, out=f"{name}.mixed")
        joined = self.add("Transpose", mixed, out=f"{name}.joined", perm=[0, 2, 1, 3])
        flat = self.add("Reshape", joined, "join", out=f"{name}.flat")
        attended = self.linear(flat, f"{name}.o", WIDTH, WIDTH)
        x = self.norm(self.add("Add", x, attended, out=f"{name}.res1"), f"{name}.ln1")
        wide = self.add("Gelu", self.linear(x, f"{name}.up", WIDTH, 4 * WIDTH), out=f"{name}.gelu")
        narrow = self.linear(wide, f"{name}.down", 4 * WIDTH, WIDTH)
        return self.norm(self.add("Add", x, narrow, out=f"{name}.res2"), f"{name}.ln2")


def write_bert(path: Path) -> None:
    """Write the model (about 440 MB): ids int32[1,128] → hidden float32[1,128,768]."""
    graph = _Graph()
    graph.constant("split", np.array([1, SEQUENCE, HEADS, WIDTH // HEADS], np.int64))
    graph.constant("join", np.array([1, SEQUENCE, WIDTH], np.int64))
    graph.constant("scale", np.array((WIDTH // HEADS) ** -0.5, np.float32))
    x = graph.add("Gather", graph.weight("embedding", VOCABULARY, WIDTH), "ids", out="embedded")
    x = graph.add("Add", x, graph.weight("positions", 1, SEQUENCE, WIDTH), out="positioned")
    x = graph.norm(x, "ln0")
    for index in range(LAYERS):
        x = graph.layer(x, f"l{index}")
    graph.add("Identity", x, out="hidden")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "bert",
            [helper.make_tensor_value_info("ids", TensorProto.INT32, [1, SEQUENCE])],
            [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [1, SEQUENCE, WIDTH])],
            graph.weights,
        ),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=10,
    )
    onnx.save(model, path)
