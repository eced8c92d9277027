"""What is looked at together, and where a graph is cut."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from qnn.localize.facts import NodeFacts, QnnOp, Stretch, Survey
from qnn.localize.plan import Plan
from tests.localize.graphs import chain, survey

# x → a → b → c → d, and d takes a again
LOOP = survey({"a": ["x"], "b": ["a"], "c": ["b"], "d": ["c", "a"]}, ["d"])
# a GELU: d, e, f are inside one QNN operator with g
GELU = survey({"a": ["x"], "d": ["a"], "e": ["d"], "f": ["e", "a"], "g": ["f"], "h": ["g"]}, ["h"])
GELU_OPS = (QnnOp("MatMul", ("a",)), QnnOp("Gelu", ("d", "e", "f", "g")), QnnOp("Relu", ("h",)))


def test_what_crosses_a_position_is_made_before_and_used_behind() -> None:
    plan = Plan(LOOP)
    assert [plan.crossing(at) for at in range(5)] == [(), ("a",), ("a", "b"), ("a", "c"), ("d",)]


def test_an_output_crosses_to_the_end() -> None:
    plan = Plan(survey({"a": ["x"], "b": ["a"]}, ["a", "b"]))
    assert plan.crossing(2) == ("a", "b")


def test_what_nobody_uses_crosses_nothing() -> None:
    assert Plan(survey({"a": ["x"], "unused": ["a"], "b": ["a"]}, ["b"])).crossing(2) == ("a",)


def test_probes_leave_out_what_is_inside_a_qnn_operator() -> None:
    assert Plan(GELU, GELU_OPS).probes(Stretch(0, 6)) == ["a", "g", "h"]
    assert Plan(GELU).probes(Stretch(0, 6)) == ["a", "d", "e", "f", "g", "h"]


def test_a_tensor_of_an_operator_that_others_use_too_is_a_probe() -> None:
    used = survey({"d": ["x"], "e": ["d"], "g": ["e"], "h": ["g", "e"]}, ["h"])
    assert Plan(used, (QnnOp("Gelu", ("d", "e", "g")),)).probes(Stretch(0, 4)) == ["e", "g", "h"]


def test_probes_of_an_output_are_what_it_depends_on() -> None:
    two = survey({"a": ["x"], "b": ["a"], "c": ["a"], "d": ["c"]}, ["b", "d"])
    assert Plan(two).probes(Stretch(0, 4), ["d"]) == ["a", "c", "d"]


def test_only_tensors_that_can_be_outputs_are_probes() -> None:
    integers = dataclasses.replace(LOOP, sizes=(("a", 4), ("d", 4)))
    assert Plan(integers).probes(Stretch(0, 4)) == ["a", "d"]


def test_an_operator_is_made_by_all_its_nodes() -> None:
    plan = Plan(GELU, GELU_OPS)
    assert plan.maker("g") == Stretch(1, 5)
    assert plan.maker("h") == Stretch(5, 6)
    assert Plan(GELU).maker("g") == Stretch(4, 5)


def test_batches_end_at_the_count_and_at_the_bytes() -> None:
    plan = Plan(chain(7))
    names = [f"n{i}" for i in range(7)]
    assert list(plan.batches(names, tensors=3)) == [("n0", "n1", "n2"), ("n3", "n4", "n5"), ("n6",)]
    assert list(plan.batches(names, size=8)) == [("n0", "n1"), ("n2", "n3"), ("n4", "n5"), ("n6",)]
    assert list(plan.batches(names[:2], size=1)) == [("n0",), ("n1",)]


def test_the_cut_is_where_fewest_tensors_cross() -> None:
    # Two branches until t, where one tensor crosses.
    graph = survey(
        {"a": ["x"], "b": ["x"], "c": ["a"], "d": ["b"], "t": ["c", "d"], "u": ["t"], "v": ["t", "u"]}, ["v"]
    )
    assert Plan(graph).middle(Plan(graph).whole) == 5


@pytest.mark.parametrize(("length", "cut"), [(2, 1), (3, 1), (8, 4), (9, 4)])
def test_a_chain_is_cut_in_its_middle(length: int, cut: int) -> None:
    assert Plan(chain(length)).middle(Stretch(0, length)) == cut


def test_an_operator_is_not_cut() -> None:
    plan = Plan(GELU, GELU_OPS)
    assert plan.middle(Stretch(1, 5)) is None
    assert plan.middle(Stretch(0, 6)) == 5 or plan.middle(Stretch(0, 6)) == 1


def test_the_graph_behind_a_tensor_begins_after_its_readers_unless_they_are_far() -> None:
    assert Plan(LOOP).past("a") == 4
    assert Plan(LOOP).past("c") == 4
    far = survey({"a": ["x"], **{f"n{i}": [f"n{i - 1}" if i else "a"] for i in range(20)}, "z": ["n19", "a"]}, ["z"])
    assert Plan(far).past("a") == 1


# q → dq → m → q1 → dq1 → n → q2 → dq2, each operator with its DequantizeLinear and QuantizeLinear
QUANTIZED = Survey(
    Path("graph.onnx"),
    (
        NodeFacts("q", "QuantizeLinear", ("x",), ("q",)),
        NodeFacts("dq", "DequantizeLinear", ("q",), ("dq",)),
        NodeFacts("m", "MatMul", ("dq",), ("m",)),
        NodeFacts("q1", "QuantizeLinear", ("m",), ("q1",)),
        NodeFacts("dq1", "DequantizeLinear", ("q1",), ("dq1",)),
        NodeFacts("n", "Tanh", ("dq1",), ("n",)),
        NodeFacts("q2", "QuantizeLinear", ("n",), ("q2",)),
        NodeFacts("dq2", "DequantizeLinear", ("q2",), ("y",)),
    ),
    ("x",),
    ("y",),
    (("dq", 4), ("dq1", 4), ("y", 4)),
)
QUANTIZED_OPS = (QnnOp("FullyConnected", ("dq", "m", "q1")), QnnOp("Tanh", ("dq1", "n", "q2")))


def test_of_a_quantized_graph_what_comes_back_from_integers_is_looked_at() -> None:
    assert Plan(QUANTIZED, QUANTIZED_OPS).probes(Stretch(0, 8)) == ["dq", "dq1", "y"]


def test_a_quantized_operator_is_alone_with_its_quantization() -> None:
    plan = Plan(QUANTIZED, QUANTIZED_OPS)
    assert plan.maker("dq1") == Stretch(1, 5)
    assert plan.maker("y") == Stretch(4, 8)


def test_a_quantized_graph_is_cut_where_integers_cross() -> None:
    plan = Plan(QUANTIZED, QUANTIZED_OPS)
    assert plan.middle(plan.whole) == 4
    assert plan.behind("dq1") == 4
    assert plan.middle(Stretch(1, 4)) is None
