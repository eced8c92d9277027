"""The compiler's trace, by the nodes of the ONNX graph."""

from __future__ import annotations

import json

import pytest

from qnn.localize.facts import QnnOp
from qnn.localize.trace import of_nodes, qnn_ops


def trace(*ops: tuple[str, list[str]]) -> str:
    mappings = [
        {
            "dst_name": "x",
            "dst_qnn_op_type": op,
            "node_group_type": "",
            "sources": [{"name": n, "type": "OP"} for n in s],
        }
        for op, s in ops
    ]
    return json.dumps({"schema_version": 2, "subgraph_traces": [{"graph_name": "g", "op_mappings": mappings}]})


# As onnxruntime-qnn 2.7.0 wrote it for a Conv (in NHWC after a Transpose of the compiler's) and a written-out GELU.
REAL = trace(
    ("Transpose", ["Transpose"]),
    ("Conv2d", ["conv_token_1"]),
    ("FullyConnected", ["mm"]),
    ("Reshape", ["mm"]),
    ("Gelu", ["g_div", "d", "g_erf", "e", "g_add", "a", "g_mul", "hm", "g_half"]),
    ("ElementWiseNeuron", ["hsig_2"]),
)
NODES = ["conv", "mm", "g_div", "g_erf", "g_add", "g_mul", "g_half", "hsig"]


def test_suffixes_and_tensors_between_fused_nodes_are_left_out() -> None:
    assert qnn_ops(REAL, NODES) == (
        QnnOp("Transpose", ()),
        QnnOp("Conv2d", ("conv",)),
        QnnOp("FullyConnected", ("mm",)),
        QnnOp("Reshape", ("mm",)),
        QnnOp("Gelu", ("g_div", "g_erf", "g_add", "g_mul", "g_half")),
        QnnOp("ElementWiseNeuron", ("hsig",)),
    )


def test_a_name_that_ends_in_a_number_is_kept_when_it_is_a_nodes() -> None:
    assert qnn_ops(trace(("Relu", ["relu_2"]), ("Relu", ["relu_2_token_7"])), ["relu", "relu_2"]) == (
        QnnOp("Relu", ("relu_2",)),
        QnnOp("Relu", ("relu_2",)),
    )


def test_the_operators_of_a_node() -> None:
    ops = qnn_ops(REAL, NODES)
    assert of_nodes(ops, ["mm"]) == ("FullyConnected", "Reshape")
    assert of_nodes(ops, ["g_erf"]) == ("Gelu",)
    assert of_nodes(ops, ["none"]) == ()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"subgraph_traces": 1}', '{"subgraph_traces": [{"op_mappings": [3]}]}']
)
def test_a_damaged_trace_has_no_operators(text: str) -> None:
    assert qnn_ops(text, NODES) == ()
