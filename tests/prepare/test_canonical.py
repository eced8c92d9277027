"""One form for one graph: whatever the order of the file, and names that stay apart."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from qnn.errors.graphs import InvalidGraph
from qnn.prepare.canonical import constant_outputs, settle_names, sort_graph, unused_inputs
from tests.prepare.graphs import model, node, noise, operators, prepared, run, specs, value


def shuffled(made: ModelProto, seed: int) -> ModelProto:
    """The same graph in another order of nodes and initializers."""
    order = random.Random(seed)
    copy = ModelProto()
    copy.CopyFrom(made)
    for field in (copy.graph.node, copy.graph.initializer, copy.graph.value_info):
        kept = list(field)
        order.shuffle(kept)
        del field[:]
        field.extend(kept)
    return copy


@st.composite
def graphs(draw: st.DrawFn) -> ModelProto:
    """Graphs of Adds whose operands are any earlier tensors; some tensors are used by nothing."""
    names = ["x", "c0", "c1"]
    nodes = []
    for index in range(draw(st.integers(1, 12))):
        inputs = [draw(st.sampled_from(names)), draw(st.sampled_from(names))]
        nodes.append(node("Add", inputs, [f"t{index}"]))
        names.append(f"t{index}")
    outputs = draw(st.lists(st.sampled_from(names[3:]), min_size=1, max_size=3, unique=True))
    return model(
        nodes, [value("x", [2])], [value(name, [2]) for name in outputs], {"c0": noise(2), "c1": noise(2, seed=1)}
    )


@settings(deadline=None)
@given(graphs(), st.integers(0, 2**32))
def test_order_does_not_depend_on_the_file(made: ModelProto, seed: int) -> None:
    other = shuffled(made, seed)
    sort_graph(made)
    sort_graph(other)
    assert made.SerializeToString() == other.SerializeToString()


@settings(deadline=None)
@given(graphs())
def test_the_sorted_graph_computes_the_same(made: ModelProto) -> None:
    feeds = {"x": noise(2, seed=7)}
    before = run(made, feeds)
    sort_graph(made)
    for expected, got in zip(before, run(made, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)
    used = {name for entry in made.graph.node for name in entry.input} | {entry.name for entry in made.graph.output}
    assert all(name in used for entry in made.graph.node for name in entry.output)
    assert all(tensor.name in used for tensor in made.graph.initializer)


def test_a_deep_graph_needs_no_recursion() -> None:
    depth = 5000
    nodes = [node("Relu", [f"t{index}"], [f"t{index + 1}"]) for index in range(depth)]
    made = model(nodes[::-1], [value("t0", [1])], [value(f"t{depth}", [1])])
    sort_graph(made)
    assert [entry.output[0] for entry in made.graph.node] == [f"t{index + 1}" for index in range(depth)]


def bad(*nodes: object, constants: dict[str, object] | None = None) -> ModelProto:
    return model(list(nodes), [value("x", [1])], [value("y", [1])], constants)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (bad(node("Add", ["x", "z"], ["y"])), "node 'Add_y' uses 'z', which nothing makes"),
        (bad(node("Relu", ["x"], ["z"])), "output 'y' is made by no node"),
        (bad(node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])), "circle"),
        (bad(node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"], name="again")), "'y' is made twice.*'again'"),
        (bad(node("Relu", ["x"], ["x"]), node("Relu", ["x"], ["y"])), "'x' is made twice"),
        (bad(node("Relu", ["x"], ["c"]), node("Relu", ["c"], ["y"]), constants={"c": noise(1)}), "'c' is made twice"),
    ],
)
def test_graphs_that_are_not_well_formed(made: ModelProto, said: str) -> None:
    with pytest.raises(InvalidGraph, match=said):
        sort_graph(made)


def test_two_initializers_of_one_name() -> None:
    made = bad(node("Add", ["x", "c"], ["y"]), constants={"c": noise(1)})
    made.graph.initializer.append(made.graph.initializer[0])
    with pytest.raises(InvalidGraph, match="'c' is the name of two initializers"):
        sort_graph(made)


def test_names_stay_apart_in_qnn_alphabet(tmp_path: Path) -> None:
    """The border keeps its names, awkward as they are; inside, what would become one name gets a number."""
    made = model(
        [
            node("Relu", ["in put"], ["/enc/layer.0/out:0"], name=" "),
            node("Neg", ["in put"], ["_enc_layer_0_out_0"], name=""),
            node("Sub", ["/enc/layer.0/out:0", "_enc_layer_0_out_0"], ["a.b"], name="a.b"),
            node("Mul", ["/enc/layer.0/out:0", "_enc_layer_0_out_0"], ["a_b"], name="a_b"),
            node("Add", ["a.b", "a_b"], ["выход"], name="a b"),
        ],
        [value("in put", [2])],
        [value(name, [2]) for name in ("a.b", "a_b", "выход")],
    )
    facts, after = prepared(made, tmp_path, specs(**{"in put": (2,)}))
    assert [tensor.name for tensor in (*facts.inputs, *facts.outputs)] == ["in put", "a.b", "a_b", "выход"]
    safe = ["".join(c if c.isascii() and c.isalnum() else "_" for c in entry.name) for entry in after.graph.node]
    assert len(set(safe)) == len(safe) == 5
    assert all(entry.name for entry in after.graph.node)
    inner = {name for entry in after.graph.node for name in entry.output} - {"a.b", "a_b", "выход"}
    assert inner == {"/enc/layer.0/out:0", "_enc_layer_0_out_0_1"}
    assert {"renamed-node", "renamed-tensor"} <= {change.kind for change in facts.changes}
    for got, expected in zip(run(after, {"in put": noise(2)}), run(made, {"in put": noise(2)}), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_nameless_node_is_named_after_its_output() -> None:
    made = bad(node("Relu", ["x"], ["y"]))
    made.graph.node[0].name = ""
    assert settle_names(made) == []
    assert made.graph.node[0].name == "Relu_y"


def test_inputs_and_outputs_that_take_no_part(tmp_path: Path) -> None:
    made = model(
        [node("Relu", ["x"], ["y"]), node("Identity", ["c"], ["constant"]), node("Identity", ["x"], ["passed"])],
        [value("x", [2]), value("unused", [3])],
        [value("y", [2]), value("constant", [4]), value("passed", [2])],
        {"c": noise(4)},
    )
    assert (unused_inputs(made), constant_outputs(made)) == (("unused",), ("constant",))
    facts, after = prepared(made, tmp_path, specs(x=(2,), unused=(3,)))
    assert (facts.unused_inputs, facts.constant_outputs) == (("unused",), ("constant",))
    assert [str(tensor) for tensor in facts.outputs] == ["y float32[2]", "constant float32[4]", "passed float32[2]"]
    feeds = {"x": noise(2), "unused": noise(3)}
    for got, expected in zip(run(after, feeds), run(made, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_constant_node_may_be_an_output(tmp_path: Path) -> None:
    made = model(
        [node("Constant", [], ["k"], value_floats=[1.0, 2.0]), node("Add", ["x", "k"], ["y"])],
        [value("x", [2])],
        [value("y", [2]), value("k", [2])],
        ir=3,
    )
    facts, after = prepared(made, tmp_path, specs(x=(2,)))
    assert operators(after) == ["Add"]
    assert (facts.constant_outputs, facts.ir) == (("k",), 4)
    np.testing.assert_array_equal(run(after, {"x": noise(2)})[1], np.array([1, 2], np.float32))


def test_attributes_are_in_one_order() -> None:
    made = bad(node("Gemm", ["x", "x"], ["y"], transB=1, alpha=2.0, beta=1.0))
    sort_graph(made)
    assert [attribute.name for attribute in made.graph.node[0].attribute] == ["alpha", "beta", "transB"]
    assert operators(made) == ["Gemm"]
