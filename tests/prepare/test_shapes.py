"""Shapes: inputs exactly as declared, everything else as it truly is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from qnn.errors.graphs import DynamicDims, EmptyTensor, InputsDiffer, InvalidGraph, ShapeConflict, UnsupportedDtype
from qnn.model.spec import InputSpec
from tests.prepare.graphs import INT64, constant, model, node, noise, prepared, run, saved, specs, value

SYMBOLIC = model(
    [node("MatMul", ["x", "w"], ["y"])],
    [value("x", ["batch", 16])],
    [value("y", ["batch", 4])],
    {"w": noise(16, 4)},
)


def test_symbols_are_fixed_from_the_bucket(tmp_path: Path) -> None:
    facts, made = prepared(SYMBOLIC, tmp_path, specs(x=("size", 16)), {"size": 3})
    assert [str(tensor) for tensor in (*facts.inputs, *facts.outputs)] == ["x float32[3,16]", "y float32[3,4]"]
    assert facts.bucket == {"size": 3}
    np.testing.assert_array_equal(run(made, {"x": noise(3, 16)})[0], run(SYMBOLIC, {"x": noise(3, 16)})[0])


def test_a_symbol_without_a_value(tmp_path: Path) -> None:
    with pytest.raises(DynamicDims, match="'size' of input 'x' has no value"):
        prepared(SYMBOLIC, tmp_path, specs(x=("size", 16)), {"other": 3})


def test_inputs_that_differ_are_all_named(tmp_path: Path) -> None:
    made = model([node("Add", ["a", "b"], ["y"])], [value("a", [1]), value("b", [1])], [value("y", [1])])
    with pytest.raises(InputsDiffer) as caught:
        prepared(made, tmp_path, specs(a=(1,), c=(1,), d=(1,)))
    assert caught.value.details == (
        "not declared: b",
        "not in the file: c",
        "not in the file: d",
        "the file's inputs: a, b",
    )


@pytest.mark.parametrize(
    ("declared", "said"),
    [((3, 17), r"\[3, 17\], but the file has \[batch, 16\]"), ((3, 16, 1), r"\[3, 16, 1\], but the file has")],
)
def test_declared_shapes_that_contradict_the_file(tmp_path: Path, declared: tuple[int, ...], said: str) -> None:
    with pytest.raises(ShapeConflict, match=said):
        prepared(SYMBOLIC, tmp_path, specs(x=declared))


def test_minus_one_is_an_open_dimension(tmp_path: Path) -> None:
    made = model([node("Relu", ["x"], ["y"])], [value("x", [-1, 4])], [value("y", [-1, 4])])
    facts, _ = prepared(made, tmp_path, specs(x=(2, 4)))
    assert facts.outputs[0].shape == (2, 4)
    assert facts.changes == ()


def test_an_input_without_any_shape_takes_the_declared_one(tmp_path: Path) -> None:
    facts, _ = prepared(
        model([node("Relu", ["x"], ["y"])], [value("x", None)], [value("y", None)]), tmp_path, specs(x=(2, 4))
    )
    assert facts.outputs[0].shape == (2, 4)


def test_scalars_stay_scalars(tmp_path: Path) -> None:
    made = model(
        [node("Mul", ["x", "s"], ["m"]), node("ReduceMean", ["m"], ["mean"], keepdims=0)],
        [value("x", [2, 3]), value("s", [])],
        [value("m", [2, 3]), value("mean", [])],
    )
    facts, after = prepared(made, tmp_path, specs(x=(2, 3), s=()))
    assert [tensor.shape for tensor in (*facts.inputs, *facts.outputs)] == [(2, 3), (), (2, 3), ()]
    feeds = {"x": noise(2, 3), "s": np.array(2, np.float32)}
    assert [array.shape for array in run(after, feeds)] == [(2, 3), ()]


def test_constants_listed_as_inputs_are_no_inputs(tmp_path: Path) -> None:
    made = model(
        [node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 2]), value("w", [2, 2])], [value("y", [1, 2])], ir=3
    )
    made.graph.initializer.append(constant("w", noise(2, 2)))
    facts, after = prepared(made, tmp_path, specs(x=(1, 2)))
    assert [entry.name for entry in after.graph.input] == ["x"]
    assert [(change.kind, change.subject) for change in facts.changes] == [("constant-input", "w")]
    assert facts.ir == 4  # the first IR version in which an initializer need not be an input
    np.testing.assert_array_equal(run(after, {"x": noise(1, 2)})[0], noise(1, 2) @ noise(2, 2))


def test_a_wrong_output_shape_is_corrected_and_recorded(tmp_path: Path) -> None:
    made = model(
        [node("Reshape", ["x", "shape"], ["y"])],
        [value("x", [24, 10])],
        [value("y", [1, 24, 10])],
        {"shape": np.array([24, 1, 10])},
    )
    facts, after = prepared(made, tmp_path, specs(x=(24, 10)))
    assert facts.outputs[0].shape == (24, 1, 10)
    assert [str(change) for change in facts.changes] == [
        "output-shape: y: declared [1, 24, 10], is [24, 1, 10]",
    ]
    assert [dim.dim_value for dim in after.graph.output[0].type.tensor_type.shape.dim] == [24, 1, 10]


def test_stale_inner_shapes_are_forgotten(tmp_path: Path) -> None:
    made = model(
        [node("Relu", ["x"], ["r"]), node("Neg", ["r"], ["y"])], [value("x", ["n", 4])], [value("y", ["n", 4])]
    )
    made.graph.value_info.append(value("r", [7, 4]))
    _, after = prepared(made, tmp_path, specs(x=(2, 4)))
    (inner,) = after.graph.value_info
    assert (inner.name, [dim.dim_value for dim in inner.type.tensor_type.shape.dim]) == ("r", [2, 4])


def test_every_inner_tensor_has_its_shape(tmp_path: Path) -> None:
    """The compiler refuses a Conv behind an operator that ONNX Runtime cannot infer, unless the file says it."""
    made = model(
        [
            node("Conv", ["x", "w"], ["a"]),
            node("GroupNormalization", ["a", "g", "b"], ["n"], num_groups=2),
            node("Conv", ["n", "w2"], ["y"]),
        ],
        [value("x", [1, 3, 5, 5])],
        [value("y", None)],
        {"w": noise(4, 3, 1, 1), "g": noise(4), "b": noise(4), "w2": noise(2, 4, 1, 1)},
        opset=21,
        ir=10,
    )
    facts, after = prepared(made, tmp_path, specs(x=(1, 3, 5, 5)))
    assert {entry.name: len(entry.type.tensor_type.shape.dim) for entry in after.graph.value_info} == {"a": 4, "n": 4}
    assert facts.outputs[0].shape == (1, 2, 5, 5)
    assert "shape-by-run" in {change.kind for change in facts.changes}


def test_a_contrib_operator_gets_its_shape_from_a_run(tmp_path: Path) -> None:
    made = model(
        [node("FusedMatMul", ["x", "w"], ["m"], domain="com.microsoft", alpha=2.0), node("Relu", ["m"], ["y"])],
        [value("x", ["n", 16])],
        [value("y", ["n", 9])],
        {"w": noise(16, 4)},
    )
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    facts, after = prepared(made, tmp_path, specs(x=(3, 16)))
    assert facts.outputs[0].shape == (3, 4)
    assert facts.opsets == {"": 17, "com.microsoft": 1}
    assert [(change.kind, change.subject) for change in facts.changes] == [
        ("shape-by-run", "y"),
        ("output-shape", "y"),
    ]
    np.testing.assert_array_equal(run(after, {"x": noise(3, 16)})[0], run(made, {"x": noise(3, 16)})[0])


def test_a_size_that_depends_on_the_data(tmp_path: Path) -> None:
    made = model([node("NonZero", ["x"], ["nz"])], [value("x", [6, 6])], [value("nz", [2, "n"], INT64)])
    with pytest.raises(DynamicDims) as caught:
        prepared(made, tmp_path, specs(x=(6, 6)))
    assert caught.value.details == (
        "node 'NonZero_nz' (NonZero): 'nz' has shape [2, ?]: its size is known only when the values are",
    )


def test_a_shape_that_is_an_input(tmp_path: Path) -> None:
    made = model(
        [node("Reshape", ["x", "shape"], ["y"])], [value("x", [6, 6]), value("shape", [2], INT64)], [value("y", None)]
    )
    with pytest.raises(DynamicDims) as caught:
        prepared(made, tmp_path, (InputSpec("x", (6, 6)), InputSpec("shape", (2,), "int64")))
    assert "its size comes from 'shape', which is computed from an input" in caught.value.details[0]


def test_shapes_computed_from_shapes_are_constants(tmp_path: Path) -> None:
    made = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node("Unsqueeze", ["n", "axis"], ["n1"]),
            node("Concat", ["n1", "rest"], ["target"], axis=0),
            node("Reshape", ["x", "target"], ["y"]),
        ],
        [value("x", ["n", 2, 3])],
        [value("y", None)],
        {"zero": np.int64(0), "axis": np.array([0]), "rest": np.array([6])},
    )
    facts, after = prepared(made, tmp_path, specs(x=(5, 2, 3)))
    assert facts.outputs[0].shape == (5, 6)
    assert [entry.op_type for entry in after.graph.node] == ["Reshape"]


def test_shapes_that_cannot_fit_are_explained(tmp_path: Path) -> None:
    made = model([node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", "k"])], [value("y", None)], {"w": noise(16, 4)})
    with pytest.raises(InvalidGraph, match="does not run with the declared shapes") as caught:
        prepared(made, tmp_path, specs(x=(3, 15)))
    assert any("MatMul" in line for line in caught.value.details)


def test_an_unknown_operator_is_named(tmp_path: Path) -> None:
    made = model([node("Wobble", ["x"], ["y"])], [value("x", [1])], [value("y", [1])])
    with pytest.raises(InvalidGraph) as caught:
        prepared(made, tmp_path, specs(x=(1,)))
    assert "Wobble" in " ".join((caught.value.message, *caught.value.details))


def test_an_empty_tensor_is_named(tmp_path: Path) -> None:
    made = model(
        [node("Concat", ["past", "x"], ["y"], axis=2)],
        [value("x", [1, 2, 1, 8]), value("past", [1, 2, "past_length", 8])],
        [value("y", None)],
    )
    with pytest.raises(EmptyTensor, match=r"'past' has shape \[1, 2, 0, 8\]"):
        prepared(made, tmp_path, specs(x=(1, 2, 1, 8), past=(1, 2, 0, 8)))


def test_an_input_that_is_no_tensor(tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [1])
    made = model([node("SequenceLength", ["s"], ["y"])], [sequence], [value("y", [], INT64)])
    with pytest.raises(UnsupportedDtype, match="'s' is a sequence_type, not a tensor"):
        prepared(saved(made, tmp_path), tmp_path, specs(s=(1,)))


RESIZED = [
    # 10 by 0.7 is 6.9999998, which is 7 in float32; scales are given for one axis, the other is doubled.
    (18, {"mode": "linear"}, 10, 0.7, ["Resize"]),
    (11, {"mode": "cubic", "coordinate_transformation_mode": "align_corners"}, 10, 0.7, ["Resize"]),
    (
        18,
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        20,
        1.4,
        ["Resize"],
    ),
    # One bit less than 1.7: the sizes would say 1.7, and position 17 would be 10 and not 10.000001.
    (
        18,
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"},
        20,
        float(np.nextafter(np.float32(1.7), np.float32(0))),
        ["Gather", "Gather"],
    ),
    (10, {"mode": "linear"}, 10, 0.7, ["MatMul", "MatMul"]),
    (9, {"mode": "nearest"}, 10, 1.4, ["Gather", "Gather"]),
]


@pytest.mark.parametrize(("opset", "attributes", "size", "scale", "becomes"), RESIZED)
def test_a_scale_whose_float32_product_is_one_element_more(
    opset: int, attributes: dict[str, str], size: int, scale: float, becomes: list[str], tmp_path: Path
) -> None:
    resize = node("Upsample", ["x", "s"], ["r"], **attributes)
    if opset >= 10:
        resize = node("Resize", ["x", "s"] if opset == 10 else ["x", "roi", "s"], ["r"], **attributes)
    made = model(
        [resize, node("Shape", ["r"], ["shape"]), node("Relu", ["r"], ["q"]), node("Reshape", ["q", "shape"], ["y"])],
        [value("x", [1, 2, size, 6])],
        [value("y", ["n", "c", "h", "w"])],
        {"s": np.array([1, 1, scale, 2], np.float32), "roi": np.zeros(0, np.float32)},
        opset=opset,
    )
    facts, after = prepared(made, tmp_path, specs(x=(1, 2, size, 6)))
    feeds = {"x": noise(1, 2, size, 6)}
    [expected], [got] = run(made, feeds), run(after, feeds)
    assert facts.outputs[0].shape == got.shape == expected.shape
    assert expected.shape[2] > int(size * float(np.float32(scale)))
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6)
    assert [made.op_type for made in after.graph.node if made.op_type in ("Gather", "MatMul", "Resize")] == becomes
    assert any(f"resize-size: {resize.name}" in str(change) for change in facts.changes)
