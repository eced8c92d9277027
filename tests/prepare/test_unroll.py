"""Loop and Scan with a known number of rounds are written out; an If that the data decides becomes a choice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from qnn.errors.graphs import ControlFlow
from qnn.model.spec import InputSpec
from tests.prepare.graphs import FLOAT, INT64, constant, model, node, noise, operators, prepared, run, specs, value

BOOL = TensorProto.BOOL


def body(
    nodes: Sequence[NodeProto], inputs: Sequence[Any], outputs: Sequence[Any], constants: dict[str, Any] | None = None
) -> GraphProto:
    held = [constant(name, array) for name, array in (constants or {}).items()]
    return helper.make_graph(nodes, "body", inputs, outputs, held)


def loop(count: int, *, ends: bool = False, fed: bool = False) -> ModelProto:
    """h = h·x + n, n the round; the rows h are put together as well."""
    last = node("Less", ["n", "three"], ["goes_on"]) if ends else node("Identity", ["c"], ["goes_on"])
    inner = body(
        [
            last,
            node("Cast", ["n"], ["number"], to=FLOAT),
            node("Mul", ["h", "x"], ["grown"]),
            node("Add", ["grown", "number"], ["sum"]),
            node("Mul", ["sum", "half"], ["next"]),
        ],
        [value("n", [], INT64), value("c", [], BOOL), value("h", [2, 3])],
        [value("goes_on", [], BOOL), value("next", [2, 3]), value("sum", [2, 3])],
        {"half": np.float32(0.5), "three": np.int64(3)},
    )
    nodes = [node("Loop", ["rounds", "", "start"], ["last", "rows"], body=inner), node("Relu", ["last"], ["y"])]
    constants: dict[str, Any] = {"start": np.ones((2, 3), np.float32)}
    inputs = [value("x", [2, 3])]
    if fed:
        inputs.append(value("rounds", [], INT64))
    else:
        constants["rounds"] = np.int64(count)
    return model(nodes, inputs, [value("y", [2, 3]), value("rows", None)], constants)


def test_a_loop_is_written_out(tmp_path: Path) -> None:
    made = loop(4)
    facts, after = prepared(made, tmp_path, specs(x=(2, 3)))
    assert "its body is written out 4 times" in {change.detail for change in facts.changes}
    assert operators(after).count("Add") == 3  # the first would add 0
    assert facts.outputs[1].shape == (4, 2, 3)
    feeds = {"x": noise(2, 3)}
    for expected, got in zip(run(made, feeds), run(after, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("made", [loop(4, ends=True), loop(4, fed=True), loop(100_000)], ids=["ends", "fed", "long"])
def test_a_loop_whose_rounds_the_data_decides_is_refused(tmp_path: Path, made: ModelProto) -> None:
    fed = [InputSpec("rounds", (), "int64")] if len(made.graph.input) > 1 else []
    with pytest.raises(ControlFlow, match=r"node 'Loop_last' \(Loop\)"):
        prepared(made, tmp_path, [*specs(x=(2, 3)), *fed])


@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize(("backwards", "axis"), [(0, 0), (1, 0), (0, 1)])
def test_a_scan_is_written_out(tmp_path: Path, opset: int, backwards: int, axis: int) -> None:
    inner = body(
        [node("Add", ["h", "row"], ["next"]), node("Neg", ["next"], ["out"])],
        [value("h", [3]), value("row", [3])],
        [value("next", [3]), value("out", [3])],
    )
    scan = node(
        "Scan",
        ["start", "x"],
        ["last", "y"],
        body=inner,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=[backwards],
        scan_output_axes=[1 - axis],
        scan_output_directions=[backwards],
    )
    shape = (5, 3) if axis == 0 else (3, 5)
    made = model(
        [scan],
        [value("x", shape)],
        [value("last", [3]), value("y", None)],
        {"start": np.zeros(3, np.float32)},
        opset=opset,
    )
    _, after = prepared(made, tmp_path, specs(x=shape))
    assert "Scan" not in operators(after)
    feeds = {"x": noise(*shape)}
    for expected, got in zip(run(made, feeds), run(after, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)


def branches(first: Sequence[int | str], second: Sequence[int | str]) -> ModelProto:
    """y = 2x or x + 2, or a sum of it, as a boolean input says."""
    then = body([node("Mul", ["x", "two"], ["a"])], [], [value("a", first)])
    if first == second:
        other = body([node("Add", ["x", "two"], ["b"])], [], [value("b", second)])
    else:
        other = body([node("ReduceMax", ["x"], ["b"], axes=[1])], [], [value("b", second)])
    nodes = [node("If", ["flag"], ["y"], then_branch=then, else_branch=other)]
    return model(nodes, [value("flag", [], BOOL), value("x", [2, 3])], [value("y", None)], {"two": np.float32(2)})


def test_an_if_that_the_data_decides_is_a_choice(tmp_path: Path) -> None:
    made = branches([2, 3], [2, 3])
    facts, after = prepared(made, tmp_path, specs(flag=(), x=(2, 3)))
    assert "both-branches" in {change.kind for change in facts.changes}
    assert sorted(operators(after)) == ["Add", "Mul", "Where"]
    for flag in (True, False):
        feeds = {"flag": np.array(flag), "x": noise(2, 3)}
        np.testing.assert_array_equal(run(after, feeds)[0], run(made, feeds)[0])


def test_branches_of_different_shapes_are_refused(tmp_path: Path) -> None:
    """Where would make [2, 3] of both."""
    with pytest.raises(ControlFlow, match=r"node 'If_y' \(If\)"):
        prepared(branches([2, 3], [2, 1]), tmp_path, specs(flag=(), x=(2, 3)))


@pytest.mark.parametrize("axis", [None, 1, -1])
def test_a_choice_by_a_constant_has_a_known_size(tmp_path: Path, axis: int | None) -> None:
    chosen = {} if axis is None else {"axis": axis}
    made = model(
        [helper.make_node("Compress", ["x", "which"], ["c"], **chosen), node("Relu", ["c"], ["y"])],
        [value("x", [2, 4])],
        [value("y", None)],
        {"which": np.array([True, False, True, True])},
    )
    facts, after = prepared(made, tmp_path, specs(x=(2, 4)))
    assert "constant-choice" in {change.kind for change in facts.changes}
    assert facts.outputs[0].shape == ((3,) if axis is None else (2, 3))
    feeds = {"x": noise(2, 4)}
    np.testing.assert_array_equal(run(after, feeds)[0], run(made, feeds)[0])
