"""A tensor of one export is found in another by what it is computed from, whatever the two call it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from qnn.export.traced import Placed, PlaceRequest, place

WEIGHT = np.arange(4, dtype=np.float32)
OWN = [
    helper.make_node("Add", ["x", "w"], ["/a/Add_output_0"], name="/a/Add"),
    helper.make_node("LeakyRelu", ["/a/Add_output_0"], ["/r_output_0"], alpha=0.25),
    helper.make_node("Add", ["/r_output_0", "x"], ["y"]),
]


def write(file: Path, nodes: list[NodeProto], outputs: list[str], weight: np.ndarray | None = WEIGHT) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", *outputs)]
    weights = [] if weight is None else [numpy_helper.from_array(weight, "w")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)


@pytest.fixture
def request_(tmp_path: Path) -> PlaceRequest:
    """The file, its names, and as many results of calls as a test may use."""
    request = PlaceRequest(tmp_path / "own.onnx", tmp_path / "again.onnx", 1, tmp_path / "names.json", tmp_path / "t")
    request.tensors.mkdir()
    write(request.model, OWN, ["y"])
    request.names.write_text(json.dumps(["/a/Add_output_0", "/r_output_0", "y"]))
    for number in range(4):
        (request.tensors / f"call-{number:05d}.npy").write_text(str(number))
    return request


def again(*changed: NodeProto) -> list[NodeProto]:
    """The nodes of OWN under other names, with a call that nothing uses, and what is changed (by operator)."""
    nodes = [
        helper.make_node("Neg", ["x"], ["dead"]),
        helper.make_node("Add", ["x", "w"], ["1"]),
        helper.make_node("LeakyRelu", ["1"], ["2"], alpha=0.25),
        helper.make_node("Add", ["2", "x"], ["3"]),
    ]
    by_outputs = {node.output[0]: node for node in changed}
    return [by_outputs.get(node.output[0], node) for node in nodes]


def test_each_tensor_gets_the_call_that_computes_it(request_: PlaceRequest) -> None:
    write(request_.traced, again(), ["3", "dead", "1", "2", "3"])
    assert place(request_) == (Placed("/a/Add_output_0", 1), Placed("/r_output_0", 2), Placed("y", 3))
    found = {path.name: path.read_text() for path in request_.tensors.iterdir()}
    assert found == {"00000.npy": "1", "00001.npy": "2", "00002.npy": "3", "call-00000.npy": "0"}


def test_of_two_calls_with_one_result_the_first_counts(request_: PlaceRequest) -> None:
    same = [*again(), helper.make_node("Identity", ["1"], ["4"])]
    write(request_.traced, same, ["3", "4", "1"])
    assert place(request_) == (Placed("/a/Add_output_0", 0),)


def test_a_weight_may_be_a_constant(request_: PlaceRequest) -> None:
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(WEIGHT, "anything"))
    write(request_.traced, [constant, *again()], ["3", "1"], None)
    assert place(request_) == (Placed("/a/Add_output_0", 0),)


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        (helper.make_node("Sub", ["x", "w"], ["1"]), []),
        (helper.make_node("Add", ["w", "x"], ["1"]), []),  # the other way round is another rounding for some operators
        (helper.make_node("LeakyRelu", ["1"], ["2"], alpha=0.5), ["/a/Add_output_0"]),
        (helper.make_node("Add", ["2", "w"], ["3"]), ["/a/Add_output_0", "/r_output_0"]),
    ],
    ids=["operator", "order", "attribute", "input"],
)
def test_what_is_computed_otherwise_is_left_out_and_all_after_it(
    request_: PlaceRequest, changed: NodeProto, left: list[str]
) -> None:
    write(request_.traced, again(changed), ["3", "1", "2", "3"])
    assert [tensor.name for tensor in place(request_)] == left


def test_other_weights_are_another_tensor(request_: PlaceRequest) -> None:
    write(request_.traced, again(), ["3", "1"], WEIGHT + 1)
    assert place(request_) == ()


def test_what_depends_on_a_graph_inside_a_node_is_left_out(request_: PlaceRequest) -> None:
    """Both branches know `1` by its name alone, and it may be another tensor in the other file."""
    branch = helper.make_graph(
        [helper.make_node("Neg", ["1"], ["b"])], "b", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])]
    )
    condition = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    choice = helper.make_node("If", ["c"], ["3"], then_branch=branch, else_branch=branch)
    for file, first in ((request_.model, "Add"), (request_.traced, "Sub")):
        write(file, [condition, helper.make_node(first, ["x", "w"], ["1"]), choice], ["3", "3"])
    request_.names.write_text(json.dumps(["1", "3"]))
    assert place(request_) == ()
