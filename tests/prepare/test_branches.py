"""Branches: gone where shapes decide them, named where the data does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, TensorProto

from qnn.errors.graphs import ControlFlow, RandomOperator
from qnn.model.spec import InputSpec
from tests.prepare.graphs import INT64, model, node, noise, operators, prepared, run, specs, value


def branch(*nodes: object, output: str, constants: dict[str, object] | None = None) -> GraphProto:
    return model(list(nodes), [], [value(output, None)], constants or {}).graph


def squeeze_if_flat() -> ModelProto:
    """What exporters write for x.squeeze(1): an If on the size of the axis, inside it another, names shared."""
    inner_then = branch(node("Squeeze", ["x", "axis"], ["out"]), output="out", constants={"axis": np.array([1])})
    inner_else = branch(node("Identity", ["x"], ["out"]), output="out")
    outer_then = branch(
        node("Equal", ["size", "one"], ["is_one"]),
        node("If", ["is_one"], ["inner"], then_branch=inner_then, else_branch=inner_else),
        node("Add", ["inner", "shift"], ["sum"]),
        output="sum",
        constants={"shift": np.float32(2)},
    )
    outer_else = branch(node("Neg", ["x"], ["sum"]), output="sum")
    return model(
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "one_index"], ["size"]),
            node("Equal", ["size", "one"], ["flat"]),
            node("If", ["flat"], ["y"], then_branch=outer_then, else_branch=outer_else),
            node("Mul", ["y", "shift"], ["z"]),
        ],
        [value("x", ["n", "m", 4])],
        [value("z", None)],
        {"one_index": np.int64(1), "one": np.int64(1), "shift": np.float32(3)},
    )


@pytest.mark.parametrize(
    ("middle", "expected", "shape"), [(1, ["Squeeze", "Add", "Mul"], (2, 4)), (3, ["Neg", "Mul"], (2, 3, 4))]
)
def test_branches_that_shapes_decide_are_resolved(
    tmp_path: Path, middle: int, expected: list[str], shape: tuple[int, ...]
) -> None:
    facts, after = prepared(squeeze_if_flat(), tmp_path, specs(x=(2, middle, 4)))
    assert operators(after) == expected
    assert facts.outputs[0].shape == shape
    feeds = {"x": noise(2, middle, 4)}
    np.testing.assert_array_equal(run(after, feeds)[0], run(squeeze_if_flat(), feeds)[0])
    assert "resolved-branch" in {change.kind for change in facts.changes}


def test_two_branches_with_the_same_inner_names_do_not_mix(tmp_path: Path) -> None:
    def add(number: float) -> GraphProto:
        return branch(
            node("Add", ["x", "k"], ["inner"]),
            node("Relu", ["inner"], ["out"]),
            output="out",
            constants={"k": np.float32(number)},
        )

    made = model(
        [
            node("If", ["yes"], ["a"], then_branch=add(1), else_branch=add(2)),
            node("If", ["no"], ["b"], then_branch=add(3), else_branch=add(4)),
            node("Sub", ["a", "b"], ["y"]),
        ],
        [value("x", [2])],
        [value("y", [2])],
        {"yes": np.array(True), "no": np.array(False)},
    )
    _, after = prepared(made, tmp_path, specs(x=(2,)))
    x = np.array([0.5, -3], np.float32)
    np.testing.assert_array_equal(run(after, {"x": x})[0], np.array([1.5 - 4.5, 0 - 1], np.float32))


def test_a_branch_may_hand_on_a_tensor_from_outside(tmp_path: Path) -> None:
    given = model([], [], [value("x", None), value("c", None), value("c", None)], {"c": noise(2)}).graph
    other = model([node("Neg", ["x"], ["n"])], [], [value("n", None), value("n", None), value("n", None)]).graph
    made = model(
        [node("If", ["yes"], ["a", "b", "c2"], then_branch=given, else_branch=other)],
        [value("x", [2])],
        [value("a", [2]), value("b", [2]), value("c2", [2])],
        {"yes": np.array(True)},
    )
    _, after = prepared(made, tmp_path, specs(x=(2,)))
    for got, expected in zip(run(after, {"x": noise(2, seed=3)}), [noise(2, seed=3), noise(2), noise(2)], strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_branch_that_the_data_decides_is_named(tmp_path: Path) -> None:
    made = model(
        [
            node("ReduceSum", ["x"], ["sum"], keepdims=0),
            node("Greater", ["sum", "zero"], ["positive"]),
            node(
                "If",
                ["positive"],
                ["y"],
                name="choose",
                then_branch=branch(node("Relu", ["x"], ["a"]), output="a"),
                else_branch=branch(node("Concat", ["x", "x"], ["a"], axis=0), output="a"),
            ),
        ],
        [value("x", [2])],
        [value("y", None)],
        {"zero": np.float32(0)},
    )
    with pytest.raises(ControlFlow, match=r"node 'choose' \(If\)"):
        prepared(made, tmp_path, specs(x=(2,)))


def test_loops_are_named(tmp_path: Path) -> None:
    body = model(
        [node("Add", ["state", "x"], ["next"]), node("Identity", ["go"], ["go_on"])],
        [value("step", [], INT64), value("go", [], TensorProto.BOOL), value("state", [2])],
        [value("go_on", [], TensorProto.BOOL), value("next", [2])],
    ).graph
    made = model(
        [node("Loop", ["times", "", "x"], ["y"], name="repeat", body=body)],
        [value("x", [2]), value("times", [], INT64)],
        [value("y", [2])],
    )
    with pytest.raises(ControlFlow, match=r"node 'repeat' \(Loop\)"):
        prepared(made, tmp_path, [*specs(x=(2,)), InputSpec("times", (), "int64")])


def test_sequences_are_named(tmp_path: Path) -> None:
    made = model(
        [
            node("SplitToSequence", ["x"], ["parts"], axis=0),
            node("SequenceLength", ["parts"], ["y"]),
            node("ConcatFromSequence", ["parts"], ["z"], axis=0),
        ],
        [value("x", [2, 2])],
        [value("y", [], INT64), value("z", None)],
    )
    with pytest.raises(ControlFlow, match=r"and [12] more") as caught:
        prepared(made, tmp_path, specs(x=(2, 2)))
    assert "SplitToSequence_parts" in " ".join((caught.value.message, *caught.value.details))


@pytest.mark.parametrize("used", [True, False])
def test_random_numbers_are_refused_where_they_count(tmp_path: Path, used: bool) -> None:
    nodes = [node("RandomNormalLike", ["x"], ["noise"]), node("Add", ["x", "noise" if used else "x"], ["y"])]
    made = model(nodes, [value("x", [2])], [value("y", [2])])
    if used:
        with pytest.raises(RandomOperator, match="RandomNormalLike_noise"):
            prepared(made, tmp_path, specs(x=(2,)))
    else:
        _, after = prepared(made, tmp_path, specs(x=(2,)))
        assert operators(after) == ["Add"]


@pytest.mark.parametrize(("training", "refused"), [(True, True), (False, False)])
def test_a_dropout_that_drops_is_random(tmp_path: Path, training: bool, refused: bool) -> None:
    made = model(
        [node("Dropout", ["x", "ratio", "training"], ["d"]), node("Relu", ["d"], ["y"])],
        [value("x", [2])],
        [value("y", [2])],
        {"ratio": np.float32(0.5), "training": np.array(training)},
    )
    if refused:
        with pytest.raises(RandomOperator, match="Dropout_d"):
            prepared(made, tmp_path, specs(x=(2,)))
    else:
        _, after = prepared(made, tmp_path, specs(x=(2,)))
        np.testing.assert_array_equal(run(after, {"x": noise(2)})[0], np.maximum(noise(2), 0))
