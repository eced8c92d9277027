"""A graph cut into stretches computes what the whole does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from qnn.localize.facts import Stretch
from qnn.localize.stretches import stretch_of, with_types
from qnn.ranges.compiled_form import run, session_of

RANDOM = np.random.default_rng(0)


def weight(name: str, *shape: int) -> onnx.TensorProto:
    values = np.random.default_rng(len(name)).normal(0, 0.5, shape)
    return numpy_helper.from_array(values.astype(np.float32), name)


def model() -> onnx.ModelProto:
    """x [2,8] and a mask [2,8] → two MatMuls with a residual, a Split, outputs y and z."""
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MatMul", ["b", "w1"], ["c"], name="second"),
        helper.make_node("Add", ["c", "a"], ["d"], name="residual"),
        helper.make_node("Mul", ["d", "mask"], ["e"], name="masked"),
        helper.make_node("Split", ["e"], ["y", "f"], name="split", axis=1, num_outputs=2),
        helper.make_node("Tanh", ["f"], ["z"], name="tanh"),
    ]
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [tensor("x", TensorProto.FLOAT, [2, 8]), tensor("mask", TensorProto.FLOAT, [2, 8])],
        [tensor("y", TensorProto.FLOAT, [2, 4]), tensor("z", TensorProto.FLOAT, [2, 4])],
        [weight("w0", 8, 8), weight("w1", 8, 8)],
    )
    return with_types(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))


FEEDS = {"x": RANDOM.normal(0, 1, (2, 8)).astype(np.float32), "mask": np.ones((2, 8), np.float32)}


def computed(part: onnx.ModelProto, values: dict[str, Any]) -> dict[str, Any]:
    onnx.checker.check_model(part)
    names = [value.name for value in part.graph.output]
    feeds = {value.name: values[value.name] for value in part.graph.input}
    return dict(zip(names, run(session_of(part, Path(".")), names, feeds), strict=True))


@pytest.mark.parametrize("at", range(1, 7))
def test_both_parts_together_compute_the_whole(at: int) -> None:
    whole = computed(model(), FEEDS)
    first = computed(stretch_of(model(), Stretch(0, at), ()), FEEDS)
    second = computed(stretch_of(model(), Stretch(at, 7), ()), {**FEEDS, **first})
    both = {**first, **second}
    for name in ("y", "z"):
        assert np.array_equal(both[name], whole[name])


def test_a_stretch_takes_in_what_is_made_before_and_gives_what_is_used_behind() -> None:
    part = stretch_of(model(), Stretch(2, 4), ())
    assert [value.name for value in part.graph.input] == ["b", "a"]
    assert [value.name for value in part.graph.output] == ["d"]
    assert [tensor.name for tensor in part.graph.initializer] == ["w1"]


def test_outputs_that_are_asked_for_need_no_more_than_their_nodes() -> None:
    part = stretch_of(model(), Stretch(0, 7), ["b"])
    assert [node.name for node in part.graph.node] == ["first", "relu"]
    assert [value.name for value in part.graph.input] == ["x"]


def test_every_tensor_has_a_type() -> None:
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model().graph.value_info}
    assert shapes == {"a": [2, 8], "b": [2, 8], "c": [2, 8], "d": [2, 8], "e": [2, 8], "f": [2, 4]}
