"""Resize, pooling, norms and constants between DequantizeLinear and QuantizeLinear: the same integers come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, numpy_helper

from qnn.faults.match import find_faults
from tests.prepare.graphs import model, node, noise, operators, run, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with
from tests.prepare.rewrites.quantized import alone, between_quantizers, parameters, through


def resize(shape: Sequence[int], scales: Sequence[float], **attributes: Any) -> ModelProto:
    constants = {"scales": np.array(scales, np.float32)}
    return alone("Resize", shape, constants, ["", "scales"], **{"mode": "linear", **attributes})


@pytest.mark.parametrize("mode", ["half_pixel", "pytorch_half_pixel", "asymmetric"])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("how", ["linear", "cubic"])
def test_resize_by_a_free_scale(mode: str, bits: int, how: str) -> None:
    made = resize([1, 3, 10, 12], [1, 1, 2.35, 2.35], coordinate_transformation_mode=mode, bits=bits, mode=how)
    after = assert_rewritten(made, {"x": noise(1, 3, 10, 12)}, "quantized-resize")
    assert between_quantizers(after) == ["Gather", "Gather", "Resize", "Slice"]
    sizes = {tensor.name: numpy_helper.to_array(tensor) for tensor in after.graph.initializer}
    [kept] = [entry for entry in after.graph.node if entry.op_type == "Resize"]
    assert sizes[kept.input[3]].tolist() == [1, 3, 47, 47]


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 24), st.sampled_from([0.65, 1.5, 1.25, 2.35, 4 / 3, 0.7]), st.sampled_from([3, 4, 5]))
def test_resize_of_any_length_and_place(size: int, scale: float, rank: int) -> None:
    """In front of the last axis, behind it, and in five dimensions: as integers, at most one in a hundred moves."""
    shape, scales = [2, 3, 4, 5, 6][:rank], [1.0] * rank
    place = {3: 2, 4: 1, 5: 3}[rank]
    shape[place], scales[place] = size, scale
    made = resize(shape, scales)
    feeds = {"x": noise(*shape, seed=size)}
    changes, after = prepared_with(made, feeds)
    (expected,), (got,) = run(made, feeds), run(after, feeds)
    assert got.shape == expected.shape
    # Positions are float32: what lies half way between two steps may be rounded to the other one.
    assert np.abs(got - expected).max() <= 1.01 * 5.25 / 255
    assert (got != expected).mean() <= 0.01
    assert not any(change.startswith("not-rewritten") and size > 12 for change in changes), changes


@pytest.mark.parametrize(
    ("shape", "scales", "attributes"),
    [
        ([1, 3, 10, 12], [1, 1, 2, 1.5], {}),
        ([1, 3, 10], [1, 1, 2], {}),
        ([1, 2, 4, 5, 6], [1, 1, 2, 2, 2], {"alike": True}),
        ([1, 3, 10, 12], [1, 1, 2.35, 2.35], {"coordinate_transformation_mode": "align_corners"}),
    ],
)
def test_resize_that_is_right_is_left(shape: list[int], scales: list[float], attributes: dict[str, Any]) -> None:
    made = resize(shape, scales, **attributes)
    assert assert_left(made, {"x": noise(*shape)}, "quantized-resize") == []


@pytest.mark.parametrize(
    ("shape", "scales", "attributes", "why"),
    [
        ([1, 2, 4, 5, 6], [1, 1, 2, 2, 2], {}, "it resizes 3"),
        ([1, 2, 9, 5], [1, 1, 0.7071, 1], {}, "no input of up to 4 times"),
        ([1, 2, 9, 6], [1, 1, 1 / 9 + 0.01, 1], {"coordinate_transformation_mode": "pytorch_half_pixel"}, "is not the"),
        ([1, 2, 8, 6], [1, 1, 0.5, 1], {"antialias": 1}, "antialias"),
    ],
)
def test_resize_that_has_no_other_form_is_said(
    shape: list[int], scales: list[float], attributes: dict[str, Any], why: str
) -> None:
    made = resize(shape, scales, **attributes)
    [said] = assert_left(made, {"x": noise(*shape)}, "quantized-resize")
    assert why in said


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("scale_shape", [(6, 8), (8,), (1, 8)])
def test_layer_norm_over_two_axes(bits: int, scale_shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(20, 250, scale_shape).astype(np.uint8)
    bias = np.random.default_rng(2).integers(-90, 90, (6, 8)).astype(np.int32)
    nodes = [
        *through("x", "x_dq"),
        node("DequantizeLinear", ["g_q", "g_s", "g_z"], ["g"]),
        node("DequantizeLinear", ["b_q", "b_s"], ["b"]),
        node("LayerNormalization", ["x_dq", "g", "b"], ["r"], axis=-2),
        *through("r", "y"),
    ]
    constants = {
        **parameters("x", -3, 3, bits),
        **parameters("r", -6, 6, bits),
        "g_q": values,
        "g_s": np.float32(0.01),
        "g_z": np.uint8(7),
        "b_q": bias,
        "b_s": np.float32(0.002),
    }
    made = model(nodes, [value("x", [2, 5, 6, 8])], [value("y", [2, 5, 6, 8])], constants, opset=21, ir=10)
    # One step of 16 bits: sums in another order may be rounded to the other side.
    after = assert_rewritten(made, {"x": noise(2, 5, 6, 8)}, "layer-norm-last-axis", within=1.01 * 2 / 2**bits)
    # Rewritten as constants of one axis: a rank above the activations' is refused by the compiler.
    weights = {entry.output[0]: entry.input[0] for entry in after.graph.node if entry.op_type == "DequantizeLinear"}
    [normal] = [entry for entry in after.graph.node if entry.op_type == "LayerNormalization"]
    shapes = {tensor.name: list(tensor.dims) for tensor in after.graph.initializer}
    assert [shapes[weights[name]] for name in normal.input[1:]] == [[48], [48]]
    assert "Expand" not in operators(after)


def sharing(dtype: type, *scales: float) -> ModelProto:
    """x plus one stored constant after the other, each with a scale of its own."""
    constants: dict[str, Any] = {**parameters("x", -3, 3), "k_q": np.array([101], dtype), "k_z": dtype(0)}
    nodes, name = through("x", "x_dq"), "x_dq"
    for index, scale in enumerate(scales):
        constants |= {f"k{index}_s": np.float32(scale), **parameters(f"a{index}", -4, 24)}
        nodes.append(node("DequantizeLinear", ["k_q", f"k{index}_s", "k_z"], [f"k{index}"]))
        nodes.append(node("Add", [name, f"k{index}"], [f"a{index}"]))
        nodes += through(f"a{index}", name := f"a{index}_dq" if index < len(scales) - 1 else "y")
    return model(nodes, [value("x", [2, 8])], [value("y", [2, 8])], constants, opset=21, ir=10)


def test_constant_with_two_scales_becomes_two() -> None:
    made = sharing(np.uint8, 0.03, 0.06, 0.03)
    after = assert_rewritten(made, {"x": noise(2, 8)}, "quantized-own-constants")
    read = [entry.input[:2] for entry in after.graph.node if entry.op_type == "DequantizeLinear"]
    stored = {scale: name for name, scale in read if name.startswith("k_q")}
    assert len(stored) == len(set(stored.values())) == 2


def test_constant_with_equal_scales_stays_one() -> None:
    assert assert_left(sharing(np.int8, 0.03, 0.03), {"x": noise(2, 8)}, "quantized-own-constants") == []


def test_shared_bias_stays_one() -> None:
    """The compiler computes biases from the layer's own scales."""
    assert assert_left(sharing(np.int32, 0.03, 0.06), {"x": noise(2, 8)}, "quantized-own-constants") == []


def test_constants_that_simplifying_shares_are_told_apart() -> None:
    """Two constants of equal bytes and different scales in the file."""
    made = sharing(np.uint8, 0.03, 0.06)
    made.graph.initializer.append(numpy_helper.from_array(np.array([101], np.uint8), "other_q"))
    [second] = [entry for entry in made.graph.node if entry.output[0] == "k1"]
    second.input[0] = "other_q"
    _, after = prepared_with(made, {"x": noise(2, 8)})
    stored = [entry.input[0] for entry in after.graph.node if entry.op_type == "DequantizeLinear"]
    constants = {tensor.name for tensor in after.graph.initializer}
    assert len([name for name in stored if name in constants]) == 2
    assert len({name for name in stored if name in constants}) == 2


def pool(size: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], **more: int) -> Any:
    """(the model, its input): AveragePool of two channels of positive numbers."""
    shape = [1, 2, *size]
    made = alone(
        "AveragePool", shape, {}, [], kernel_shape=list(kernel), strides=list(strides), pads=list(pads), **more
    )
    return made, {"x": np.abs(noise(*shape))}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_average_pool_without_its_padding(data: st.DataObject) -> None:
    """Whatever is rewritten is the same, integer for integer, and has nothing left that the compiler gets wrong."""
    rank = data.draw(st.integers(1, 3))
    numbers = {name: data.draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)) for name, low, high in
               (("size", 4, 9), ("kernel", 2, 4), ("strides", 1, 3), ("begins", 0, 3), ("ends", 0, 3))}  # fmt: skip
    kernel = numbers["kernel"]
    pads = [min(pad, size - 1) for name in ("begins", "ends") for pad, size in zip(numbers[name], kernel, strict=True)]
    further = {"ceil_mode": data.draw(st.integers(0, 1)), "count_include_pad": data.draw(st.integers(0, 1))}
    made, feeds = pool(numbers["size"], kernel, numbers["strides"], pads, **further)
    changes, after = prepared_with(made, feeds)
    for expected, got in zip(run(made, feeds), run(after, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)
    if not any("not-rewritten" in change for change in changes):
        assert find_faults(after) == ()


@pytest.mark.parametrize(
    ("size", "kernel", "strides", "pads", "more", "form"),
    [
        ([10, 10], [5, 5], [3, 3], [2, 2, 2, 2], {}, ["Slice", "AveragePool"] * 9 + ["Concat"] * 4),
        ([11, 9], [3, 1], [1, 1], [1, 0, 1, 0], {}, ["Slice"] * 2 + ["AveragePool"] * 3 + ["Concat"]),
        ([11, 11], [2, 2], [2, 2], [1, 1, 1, 1], {"count_include_pad": 1}, ["Conv"]),
        ([10, 10], [3, 3], [2, 2], [0, 0, 0, 0], {"ceil_mode": 1}, ["AveragePool"]),
        ([2, 2], [5, 5], [3, 3], [2, 2, 2, 2], {}, ["AveragePool"]),
    ],
)
def test_forms_of_average_pool(
    size: list[int], kernel: list[int], strides: list[int], pads: list[int], more: dict[str, int], form: list[str]
) -> None:
    made, feeds = pool(size, kernel, strides, pads, **more)
    after = assert_rewritten(made, feeds, "quantized-average-pool", within=0)
    assert sorted(between_quantizers(after)) == sorted(form)


@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "more"),
    [
        ([3, 3], [2, 2], [1, 1, 1, 1], {}),
        ([5, 5], [1, 1], [2, 2, 2, 2], {}),
        ([3, 3], [1, 1], [1, 1, 1, 1], {"count_include_pad": 1}),
        ([4, 4], [4, 4], [0, 0, 0, 0], {}),
    ],
)
def test_average_pool_that_is_right_is_left(
    kernel: list[int], strides: list[int], pads: list[int], more: dict[str, int]
) -> None:
    made, feeds = pool([12, 12], kernel, strides, pads, **more)
    assert assert_left(made, feeds, "quantized-average-pool") == []
