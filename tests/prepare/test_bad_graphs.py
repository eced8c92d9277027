"""Graphs that are wrong, or only look it: the wrong ones are refused with a name, the others prepared all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper, numpy_helper

from qnn.errors.graphs import InvalidGraph, NotNumbers
from qnn.prepare.wire import FAR_BYTES
from tests.prepare.graphs import FLOAT, Array, model, node, noise, prepared, run, specs, value


def weights(shape: tuple[int, ...], place: int | None = None, bad: float = np.nan) -> Array:
    made = noise(*shape)
    if place is not None:
        made.reshape(-1)[place] = bad
    return made


def conv(kernel: Array, bias: Array) -> onnx.ModelProto:
    return model(
        [node("Conv", ["x", "w", "b"], ["y"])],
        [value("x", [1, 3, 8, 8])],
        [value("y", [1, 4, 6, 6])],
        {"w": kernel, "b": bias},
    )


X = specs(x=(1, 3, 8, 8))


@pytest.mark.parametrize(
    ("kernel", "bias", "said"),
    [
        (weights((4, 3, 3, 3), 31), noise(4), r"'w' hold 1 of 108 values that are NaN.*first at \[1, 0, 1, 1\]"),
        (weights((4, 3, 3, 3), 0, -np.inf), noise(4), r"'w' hold 1 of 108 values .*infinite.*\[0, 0, 0, 0\]"),
        (weights((4, 3, 3, 3)), weights((4,), 3, np.inf), r"'b' hold 1 of 4 values .*infinite.*\[3\]; node 'Conv_y'"),
        (weights((4, 3, 3, 3), 5), weights((4,), 1), r"'w' hold .*and 1 more like them"),
    ],
    ids=["nan", "inf", "inf-bias", "both"],
)
def test_weights_that_are_not_numbers_are_named(kernel: Array, bias: Array, said: str, tmp_path: Path) -> None:
    with pytest.raises(NotNumbers, match=said):
        prepared(conv(kernel, bias), tmp_path, X)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_looked_at_too(dtype: type, tmp_path: Path) -> None:
    kernel: Array = weights((4, 6), 7).astype(dtype)
    made = model(
        [node("Cast", ["w"], ["c"], to=FLOAT), node("MatMul", ["x", "c"], ["y"])],
        [value("x", [2, 4])],
        [value("y", [2, 6])],
    )
    made.graph.initializer.append(numpy_helper.from_array(kernel, "w"))
    with pytest.raises(NotNumbers, match=r"'w' hold 1 of 24 values that are NaN, the first at \[1, 1\]; node 'Cast_c'"):
        prepared(made, tmp_path, specs(x=(2, 4)))


def test_weights_that_stay_in_their_file_are_looked_at(tmp_path: Path) -> None:
    rows = 3 * (8 << 20) // (4 * 1024)  # three pieces of what is read at once
    kernel = weights((rows, 1024), rows * 1024 - 2)
    assert kernel.nbytes > FAR_BYTES
    made = model([node("MatMul", ["x", "w"], ["y"])], [value("x", [1, rows])], [value("y", [1, 1024])], {"w": kernel})
    with pytest.raises(NotNumbers, match=rf"1 of {kernel.size} values .*first at \[{rows - 1}, 1022\]"):
        prepared(made, tmp_path, specs(x=(1, rows)))


def test_a_constant_node_is_a_weight_like_any_other(tmp_path: Path) -> None:
    made = model(
        [
            node("Constant", [], ["c"], value=numpy_helper.from_array(weights((8, 2), 9))),
            node("MatMul", ["x", "c"], ["y"]),
        ],
        [value("x", [3, 8])],
        [value("y", [3, 2])],
    )
    with pytest.raises(NotNumbers, match=r"'c' hold 1 of 16 values that are NaN or infinite, the first at \[4, 1\]"):
        prepared(made, tmp_path, specs(x=(3, 8)))


def test_infinities_that_are_no_weights_and_nan_that_nobody_uses_are_in_order(tmp_path: Path) -> None:
    """A mask of a softmax, the border of a Clip, the start of a maximum; and a leftover that no output needs."""
    mask = np.triu(np.full((4, 4), -np.inf, np.float32), 1)
    made = model(
        [
            node("Clip", ["x", "", "top"], ["c"]),
            node("Add", ["c", "mask"], ["s"]),
            node("Softmax", ["s"], ["p"]),
            node("Max", ["p", "least"], ["y"]),
            node("Add", ["x", "left"], ["unused"]),
        ],
        [value("x", [4, 4])],
        [value("y", [4, 4])],
        {
            "mask": mask,
            "top": np.float32(np.inf),
            "least": np.float32(-np.inf),
            "left": np.full((4, 4), np.nan, np.float32),
        },
    )
    x = noise(4, 4)
    _, after = prepared(made, tmp_path, specs(x=(4, 4)))
    np.testing.assert_allclose(run(after, {"x": x})[0], run(made, {"x": x})[0], atol=1e-6)


LONG = "encoder." * 500
ODD_NAMES = ["größe/层.0:0", "a b\tc", '<img src="x">', "%s{0}$(touch x)", "../../up", "\u202eright", "0", LONG, "."]


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: ascii(name[:12]))
def test_names_of_any_kind_are_kept_apart_and_compute_the_same(name: str, tmp_path: Path) -> None:
    """The same odd name for a node, a weight of another layer and, with one character changed, an inner tensor."""
    made = model(
        [node("MatMul", ["x", f"{name}w"], [name], name=name), node("Add", [name, f"{name}-w"], ["y"], name=name)],
        [value("x", [2, 3])],
        [value("y", [2, 3])],
        {f"{name}w": noise(3, 3), f"{name}-w": noise(3, seed=1)},
    )
    x = noise(2, 3, seed=2)
    facts, after = prepared(made, tmp_path, specs(x=(2, 3)))
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["net.onnx", "prepared.json"]
    assert len({entry.name for entry in after.graph.node}) == 2
    assert [change.subject for change in facts.changes if change.kind == "renamed-node"] == [name]
    # ONNX Runtime does not load the original: two of its nodes have one name.
    np.testing.assert_allclose(run(after, {"x": x})[0], x @ noise(3, 3) + noise(3, seed=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: ascii(name[:12]))
def test_names_of_inputs_and_outputs_are_kept_whatever_they_are(name: str, tmp_path: Path) -> None:
    made = model([node("Relu", [name], [f"{name}!"])], [value(name, ["n", 3])], [value(f"{name}!", ["n", 3])])
    facts, after = prepared(made, tmp_path, specs(**{name: ("n", 3)}), {"n": 2})
    assert ([entry.name for entry in facts.inputs], [entry.name for entry in facts.outputs]) == ([name], [f"{name}!"])
    x = noise(2, 3)
    np.testing.assert_array_equal(run(after, {name: x})[0], np.maximum(x, 0))


def _two_inputs(made: onnx.ModelProto) -> None:
    made.graph.input.append(made.graph.input[0])


def _two_weights(made: onnx.ModelProto) -> None:
    made.graph.initializer.append(made.graph.initializer[0])


def _made_twice(made: onnx.ModelProto) -> None:
    made.graph.node.append(node("Relu", ["x"], ["y"], name="second"))


def _input_made_again(made: onnx.ModelProto) -> None:
    made.graph.node.append(node("Relu", ["y"], ["x"], name="back"))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_two_inputs, "'x' is the name of two inputs"),
        (_two_weights, "'w' is the name of two initializers"),
        (_made_twice, "tensor 'y' is made twice, the second time by node 'second'"),
        (_input_made_again, "tensor 'x' is made twice, the second time by node 'back'"),
    ],
    ids=lambda entry: getattr(entry, "__name__", None),
)
def test_tensors_of_one_name_are_refused(harm: Callable[[onnx.ModelProto], None], said: str, tmp_path: Path) -> None:
    made = conv(noise(4, 3, 3, 3), noise(4))
    harm(made)
    with pytest.raises(InvalidGraph, match=said):
        prepared(made, tmp_path, X)


def test_an_initializer_listed_as_input_is_a_constant_and_an_unused_input_stays(tmp_path: Path) -> None:
    made = conv(noise(4, 3, 3, 3), noise(4))
    made.graph.input.extend([value("w", [4, 3, 3, 3]), value("b", [4]), value("spare", [2])])
    facts, after = prepared(made, tmp_path, (*X, *specs(spare=(2,))))
    assert [entry.name for entry in facts.inputs] == ["x", "spare"]
    assert facts.unused_inputs == ("spare",)
    feeds = {"x": noise(1, 3, 8, 8, seed=3), "spare": noise(2)}
    np.testing.assert_allclose(run(after, feeds)[0], run(made, feeds)[0], atol=1e-6)


def test_a_batch_of_several_is_computed_whole(tmp_path: Path) -> None:
    made = conv(noise(4, 3, 3, 3), noise(4))
    made.graph.input[0].CopyFrom(value("x", ["n", 3, 8, 8]))
    made.graph.output[0].CopyFrom(value("y", ["n", 4, 6, 6]))
    facts, after = prepared(made, tmp_path, specs(x=("n", 3, 8, 8)), {"n": 5})
    assert facts.outputs[0].shape == (5, 4, 6, 6)
    x = noise(5, 3, 8, 8, seed=4)
    np.testing.assert_allclose(run(after, {"x": x})[0], run(made, {"x": x})[0], atol=1e-6)


@pytest.mark.parametrize("dims", [[2**62, 2**62], [2**40], [1 << 31, 3]])
def test_weights_larger_than_any_memory_are_refused_before_they_are_made(dims: list[int], tmp_path: Path) -> None:
    made = conv(noise(4, 3, 3, 3), noise(4))
    made.graph.initializer[0].dims[:] = dims
    with pytest.raises(InvalidGraph, match=r"'w' are damaged: shape .* the file holds 432"):
        prepared(made, tmp_path, X)


@pytest.mark.parametrize("op_type", ["CenterCropPad", "Mish", "NoSuchThing"])
def test_an_operator_that_the_opset_does_not_have_is_named(op_type: str, tmp_path: Path) -> None:
    made = model([node(op_type, ["x", "s"], ["y"])], [value("x", [4])], [value("y", [2])], {"s": np.array([2])})
    with pytest.raises(InvalidGraph) as caught:
        prepared(made, tmp_path, specs(x=(4,)))
    assert op_type in "\n".join(caught.value.lines())


@pytest.mark.parametrize(
    "attribute",
    [
        helper.make_attribute("mode", 1.5),
        helper.make_attribute("nearest_mode", [1, 2]),
        AttributeProto(name="coordinate_transformation_mode", s=b"asymmetric"),  # no type at all
    ],
    ids=lambda attribute: attribute.name,
)
def test_an_attribute_of_another_type_is_named(attribute: AttributeProto, tmp_path: Path) -> None:
    made = model(
        [node("Resize", ["x", "", "s"], ["y"])],
        [value("x", [1, 1, 2, 2])],
        [value("y", [1, 1, 4, 4])],
        {"s": np.array([1, 1, 2, 2], np.float32)},
    )
    made.graph.node[0].attribute.append(attribute)
    with pytest.raises(InvalidGraph, match=rf"node 'Resize_y' \(Resize\) has attribute '{attribute.name}' of another"):
        prepared(made, tmp_path, specs(x=(1, 1, 2, 2)))


def test_an_attribute_of_another_type_inside_a_branch_is_named(tmp_path: Path) -> None:
    inner = helper.make_graph([node("Softmax", ["x"], ["t"], axis=1.0)], "then", [], [value("t", [2, 3])])
    other = helper.make_graph([node("Relu", ["x"], ["e"])], "else", [], [value("e", [2, 3])])
    made = model(
        [node("If", ["c"], ["y"], then_branch=inner, else_branch=other)],
        [value("x", [2, 3])],
        [value("y", [2, 3])],
        {"c": np.array(False)},
    )
    with pytest.raises(InvalidGraph, match=r"node 'Softmax_t' .* has attribute 'axis'"):
        prepared(made, tmp_path, specs(x=(2, 3)))


def test_a_node_with_too_few_inputs_and_a_mode_that_is_no_text_are_named(tmp_path: Path) -> None:
    made = model(
        [node("CumSum", ["x"], ["c"]), node("Pad", ["c", "p"], ["y"], mode=b"\xff")],
        [value("x", [2, 3])],
        [value("y", [2, 5])],
        {"p": np.array([0, 1, 0, 1])},
    )
    with pytest.raises(InvalidGraph, match=r"node 'CumSum_c' \(CumSum\) has 1 inputs, fewer .* and 1 more") as caught:
        prepared(made, tmp_path, specs(x=(2, 3)))
    assert caught.value.details == ("node 'Pad_y' (Pad) has attribute 'mode' whose value is no text",)


def test_a_graph_of_constants_alone_is_refused(tmp_path: Path) -> None:
    """The compiler would make no binary, and no error."""
    made = model([node("Add", ["k", "k"], ["y"])], [value("x", [2])], [value("y", [2])], {"k": noise(2)})
    with pytest.raises(InvalidGraph, match="no output depends on an input: 'y'"):
        prepared(made, tmp_path, specs(x=(2,)))
