"""The compiler's dump and trace, as onnxruntime-qnn 2.7.0 writes them."""

from __future__ import annotations

import json

import pytest

from qnn.hints.qnn_graph import QnnGraph, QnnNode, qnn_graph

DUMP = {
    "Total MACs per inference": "",
    "graph": {
        "nodes": {
            "Transpose": {"type": "Transpose", "input_names": ["x"], "output_names": ["Transpose_out0"]},
            "conv_token_1": {
                "type": "Conv2d",
                "input_names": ["Transpose_out0", "w"],
                "output_names": ["c"],
                "scalar_params": {"group": {"306": 1}, "x": {"1288": False}},
            },
            "mm": {
                "type": "MatMul",
                "input_names": ["c", "m"],
                "output_names": ["y"],
                "scalar_params": {"transpose_in0": {"1288": False}, "transpose_in1": {"1288": True}},
            },
        },
        "tensors": {
            "x": {"dims": [1, 3, 16, 16], "data_type": 562, "type": 0},
            "Transpose_out0": {"dims": [1, 16, 16, 3], "data_type": 562, "type": 3},
            "c": {"dims": [1, 16, 16, 8], "data_type": 562, "type": 3},
            "y": {"dims": [1, 16, 16, 10], "data_type": 562, "type": 1},
        },
    },
}
TRACE = {
    "subgraph_traces": [
        {
            "op_mappings": [
                {"dst_name": name, "dst_qnn_op_type": "", "sources": [{"name": source, "type": "OP"}]}
                for name, source in (("Transpose", "Transpose"), ("conv_token_1", "conv_token_1"), ("mm", "mm"))
            ]
        }
    ]
}
NODES = {"conv", "mm"}


def read(dump: object = DUMP, trace: object = TRACE) -> QnnGraph:
    return qnn_graph(json.dumps(dump), json.dumps(trace), NODES)


def test_operators_know_their_onnx_nodes() -> None:
    graph = read()
    assert [(node.op, node.nodes) for node in graph.nodes] == [
        ("Transpose", ()),
        ("Conv2d", ("conv",)),
        ("MatMul", ("mm",)),
    ]
    assert graph.of_node("conv") == (
        QnnNode("conv_token_1", "Conv2d", ("Transpose_out0", "w"), ("c",), ("conv",), ("group",)),
    )
    assert graph.nodes[2].flags == ("transpose_in1",)


def test_tensors_know_their_size_and_side() -> None:
    graph = read()
    assert (graph.shape("c"), graph.elements("c"), graph.elements("unknown")) == ((1, 16, 16, 8), 2048, 0)
    assert (graph.inputs, graph.outputs) == (frozenset({"x"}), frozenset({"y"}))


@pytest.mark.parametrize(
    "dump",
    ["", "{", "[]", "{}", '{"graph": {"nodes": [], "tensors": {}}}', '{"graph": {"nodes": {"a": 1}, "tensors": {}}}'],
)
def test_a_dump_of_another_form_is_an_empty_graph(dump: str) -> None:
    assert qnn_graph(dump, json.dumps(TRACE), NODES) == QnnGraph()


def test_without_a_trace_there_is_no_telling_what_was_put_in() -> None:
    assert qnn_graph(json.dumps(DUMP), "{", NODES) == QnnGraph()
