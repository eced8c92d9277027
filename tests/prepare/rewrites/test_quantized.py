"""Rewrites of nodes between DequantizeLinear and QuantizeLinear: the same integers come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from qnn.faults.match import find_faults
from tests.prepare.graphs import model, node, noise, operators, run, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

BITS = {8: np.uint8, 16: np.uint16}


def parameters(name: str, low: float, high: float, bits: int = 8) -> dict[str, Any]:
    """NAME_s and NAME_z of a range."""
    scale = np.float32((high - low) / (2**bits - 1))
    return {f"{name}_s": scale, f"{name}_z": BITS[bits](round(-low / float(scale)))}


def through(name: str, output: str, of: str = "") -> list[NodeProto]:
    """Q and DQ of a tensor, with the parameters of `of`."""
    given = [f"{of or name}_s", f"{of or name}_z"]
    return [
        node("QuantizeLinear", [name, *given], [f"{name}_q"]),
        node("DequantizeLinear", [f"{name}_q", *given], [output]),
    ]


def alone(
    op_type: str, shape: Sequence[int], constants: Mapping[str, Any], inputs: Sequence[str], **attributes: Any
) -> ModelProto:
    """One operator between Q/DQ of opset 21; bits=8 unless given; alike: of the same parameters on both sides."""
    bits, alike = attributes.pop("bits", 8), attributes.pop("alike", False)
    nodes = [*through("x", "x_dq"), node(op_type, ["x_dq", *inputs], ["r"], **attributes), *through("r", "y")]
    low, high = (-3.0, 3.0) if alike else (-2.5, 2.75)
    own = {**parameters("x", -3, 3, bits), **parameters("r", low, high, bits), **constants}
    return model(nodes, [value("x", shape)], [value("y", None)], own, opset=21, ir=10)


def resize(shape: Sequence[int], scales: Sequence[float], **attributes: Any) -> ModelProto:
    constants = {"scales": np.array(scales, np.float32)}
    return alone("Resize", shape, constants, ["", "scales"], **{"mode": "linear", **attributes})


def between_quantizers(after: ModelProto) -> list[str]:
    """The operators other than Q and DQ; every one of them must read a DQ or a constant and be read by Q alone."""
    graph = after.graph
    quantized = {name for entry in graph.node if entry.op_type == "DequantizeLinear" for name in entry.output}
    read = {name for entry in graph.node if entry.op_type == "QuantizeLinear" for name in entry.input}
    inner = [entry for entry in graph.node if entry.op_type not in ("QuantizeLinear", "DequantizeLinear")]
    assert all(entry.input[0] in quantized and entry.output[0] in read for entry in inner)
    return [entry.op_type for entry in inner]


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


def layer(behind: Sequence[NodeProto], result: Mapping[str, Any], *, weights: str = "channels") -> ModelProto:
    """x → Conv by int8 weights → `behind`, from c to r, then Q with r_s and r_z (none without them) → y."""
    stored = np.random.default_rng(3).integers(-127, 127, (4, 3, 3, 3)).astype(np.int8)
    scale = np.linspace(0.002, 0.004, 4, dtype=np.float32) if weights == "channels" else np.float32(0.003)
    nodes = [
        *through("x", "x_dq"),
        node("DequantizeLinear", ["w_q", "w_s"], ["w"], axis=0),
        node("Conv", ["x_dq", "w"], ["c"]),
        *behind,
    ]
    if result:
        given = [name for name in ("r_s", "r_z") if name in result]
        nodes += [node("QuantizeLinear", ["r", *given], ["r_q"]), node("DequantizeLinear", ["r_q", *given], ["y"])]
    own = {"w_q": stored, "w_s": scale, **parameters("x", -3, 3), **result}
    read = {name for entry in nodes for name in entry.input}
    constants = {name: array for name, array in own.items() if name in read}
    return model(nodes, [value("x", [1, 3, 8, 9])], [value("y", None)], constants, opset=21, ir=10)


BOUNDS = {"low": np.float32(0.0), "high": np.float32(1.3)}


@pytest.mark.parametrize(
    ("operator", "result"),
    [
        (["Relu", "c"], {"r_s": np.float32(0.03), "r_z": np.int8(0)}),
        (["Relu", "c"], {"r_s": np.float32(0.03)}),
        (["Relu", "c"], {"r_s": np.float32(0.0001), "r_z": np.uint16(30000)}),
        (["Clip", "c", "low", "high"], {"r_s": np.float32(0.03), "r_z": np.uint8(40), **BOUNDS}),
        (["Clip", "c", "", "high"], {"r_s": np.float32(0.017), "r_z": np.uint8(100), **BOUNDS}),
    ],
)
def test_relu_behind_a_layer_is_quantized_apart(operator: list[str], result: dict[str, Any]) -> None:
    made = layer([node(operator[0], operator[1:], ["r"])], result)
    after = assert_rewritten(made, {"x": noise(1, 3, 8, 9)}, "quantized-activation", within=0)
    assert between_quantizers(after)[:2] == ["Conv", operator[0]]


def test_relu_that_the_range_does_is_left() -> None:
    made = layer([node("Relu", ["c"], ["r"])], {"r_s": np.float32(0.03), "r_z": np.uint8(0)})
    assert assert_left(made, {"x": noise(1, 3, 8, 9)}, "quantized-activation") == []
    assert assert_left(made, {"x": noise(1, 3, 8, 9)}, "quantized-weights-float") == []


def test_clip_of_16_bits_is_flat() -> None:
    behind = [*through("c", "c_dq", "r"), node("Clip", ["c_dq", "low", "high"], ["r"])]
    result = {"r_s": np.float32(0.0001), "r_z": np.uint16(30000), **BOUNDS}
    after = assert_rewritten(layer(behind, result), {"x": noise(1, 3, 8, 9)}, "quantized-clip-flat", within=0)
    assert between_quantizers(after) == ["Conv", "Reshape", "Clip", "Reshape"]
    eight = {"r_s": np.float32(0.02), "r_z": np.uint8(100), **BOUNDS}
    assert assert_left(layer(behind, eight), {"x": noise(1, 3, 8, 9)}, "quantized-clip-flat") == []


@pytest.mark.parametrize(
    ("behind", "result"),
    [
        ([node("Identity", ["c"], ["y"])], {}),
        ([node("Sigmoid", ["c"], ["r"])], {"r_s": np.float32(1 / 255), "r_z": np.uint8(0)}),
    ],
)
def test_weights_of_a_float_layer_become_floats(behind: list[NodeProto], result: dict[str, Any]) -> None:
    after = assert_rewritten(layer(behind, result), {"x": noise(1, 3, 8, 9)}, "quantized-weights-float", within=1e-6)
    [conv] = [entry for entry in after.graph.node if entry.op_type == "Conv"]
    assert conv.input[1] in {tensor.name for tensor in after.graph.initializer}
    one = layer(behind, result, weights="tensor")
    assert assert_left(one, {"x": noise(1, 3, 8, 9)}, "quantized-weights-float") == []


@pytest.mark.parametrize("block", [0, 8])
@pytest.mark.parametrize("dtype", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8])
def test_weights_in_blocks_and_in_4_bits(block: int, dtype: int) -> None:
    signed = dtype != TensorProto.UINT4
    random = np.random.default_rng(4)
    stored = random.integers(-7 if signed else 0, 8 if signed else 16, (16, 6))
    shape = (2, 6) if block else (6,)
    scale = random.uniform(0.01, 0.2, shape).astype(np.float32)
    how: dict[str, Any] = {"axis": 0, "block_size": block} if block else {"axis": 1}
    nodes = [node("DequantizeLinear", ["w_q", "w_s", "w_z"], ["w"], **how), node("MatMul", ["x", "w"], ["y"])]
    made = model(nodes, [value("x", [3, 16])], [value("y", [3, 6])], {"w_s": scale}, opset=21, ir=10)
    made.graph.initializer.append(helper.make_tensor("w_q", dtype, stored.shape, stored.reshape(-1).tolist()))
    zeros = random.integers(0, 3, shape)
    made.graph.initializer.append(helper.make_tensor("w_z", dtype, shape, zeros.reshape(-1).tolist()))
    after = assert_rewritten(made, {"x": noise(3, 16)}, "quantized-weights-float")
    assert operators(after) == ["MatMul"]


def signed(op_type: str, dtype: type, *, stored: bool = False, **attributes: Any) -> ModelProto:
    """An operator of signed activations, and a ReLU of 16 bits behind it."""
    steps = np.iinfo(dtype).max
    nodes = [] if stored else [node("QuantizeLinear", ["x", "x_s", "x_z"], ["x_q"])]
    nodes += [
        node("DequantizeLinear", ["x" if stored else "x_q", "x_s", "x_z"], ["x_dq"]),
        node(op_type, ["x_dq"], ["r"], **attributes),
        *through("r", "y"),
    ]
    constants = {"x_s": np.float32(3 / steps), "x_z": dtype(5), "r_s": np.float32(2 / steps), "r_z": dtype(-9)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) if stored else TensorProto.FLOAT
    return model(nodes, [value("x", [1, 4, 6, 8], kind)], [value("y", None)], constants, opset=21, ir=10)


@pytest.mark.parametrize(
    ("op_type", "dtype", "attributes"),
    [("Softmax", np.int8, {}), ("AveragePool", np.int16, {"kernel_shape": [2, 2]}), ("HardSwish", np.int16, {})],
)
def test_signed_activations_become_unsigned(op_type: str, dtype: type, attributes: dict[str, Any]) -> None:
    made = signed(op_type, dtype, **attributes)
    after = assert_rewritten(made, {"x": noise(1, 4, 6, 8) * np.float32(2)}, "quantized-unsigned", within=0)
    zeros = {tensor.name: numpy_helper.to_array(tensor) for tensor in after.graph.initializer}
    found = {zeros[entry.input[2]].dtype.name for entry in after.graph.node if len(entry.input) > 2}
    assert found == {f"u{np.dtype(dtype).name}"}


def test_signed_activations_elsewhere_and_at_the_border_stay() -> None:
    x = noise(1, 4, 6, 8)
    assert assert_left(signed("Tanh", np.int8), {"x": x}, "quantized-unsigned") == []
    made = signed("Softmax", np.int8, stored=True)
    [said] = assert_left(made, {"x": (x * 20).astype(np.int8)}, "quantized-unsigned")
    assert "is signed" in said
    [found] = find_faults(prepared_with(made, {"x": (x * 20).astype(np.int8)})[1])
    assert found.pattern == "signed_activations"


def test_space_to_depth_is_quantized_alike() -> None:
    made = alone("SpaceToDepth", [1, 2, 4, 6], {}, [], blocksize=2)
    after = assert_rewritten(made, {"x": noise(1, 2, 4, 6)}, "quantized-space-to-depth", within=0)
    [kept] = [entry for entry in after.graph.node if entry.op_type == "SpaceToDepth"]
    makers = {entry.output[0]: entry for entry in after.graph.node}
    [behind] = [entry for entry in after.graph.node if kept.output[0] in entry.input]
    assert makers[kept.input[0]].input[1:] == behind.input[1:]
    assert assert_left(after, {"x": noise(1, 2, 4, 6)}, "quantized-space-to-depth") == []


@pytest.mark.parametrize("made", ["constant", "activation"])
def test_only_activations_are_refused_per_channel(made: str) -> None:
    """Weights turned and quantized in the graph are weights."""
    nodes = [
        *through("x", "x_dq"),
        node("DequantizeLinear", ["w_q", "w_s"], ["w"], axis=0),
        node("Transpose", ["w" if made == "constant" else "x_dq"], ["t"], perm=[1, 0]),
        node("QuantizeLinear", ["t", "w_s", "w_z"], ["t_q"], axis=1),
        node("DequantizeLinear", ["t_q", "w_s", "w_z"], ["t_dq"], axis=1),
        node("MatMul", ["x_dq", "t_dq"], ["r"]),
        *through("r", "y"),
    ]
    constants = {
        **parameters("x", -3, 3),
        **parameters("r", -30, 30),
        "w_q": np.random.default_rng(0).integers(-127, 127, (6, 6)).astype(np.int8),
        "w_s": np.linspace(0.01, 0.02, 6, dtype=np.float32),
        "w_z": np.zeros(6, np.int8),
    }
    if made == "activation":
        del constants["w_q"]
        nodes.pop(2)
    found = find_faults(model(nodes, [value("x", [6, 6])], [value("y", [6, 6])], constants, opset=21, ir=10))
    assert [fault.pattern for fault in found] == ([] if made == "constant" else ["activations_by_channel"])


@pytest.mark.parametrize(
    ("op_type", "axis", "attributes", "floats"),
    [
        ("MatMul", 0, {}, True),
        ("MatMul", -1, {}, False),
        ("Gemm", 0, {}, True),
        ("Gemm", 1, {}, False),
        ("Gemm", 0, {"transB": 1}, False),
        ("Gemm", 1, {"transB": 1}, True),
    ],
)
def test_scales_along_the_summed_axis(op_type: str, axis: int, attributes: dict[str, Any], *, floats: bool) -> None:
    nodes = [
        *through("x", "x_dq"),
        node("DequantizeLinear", ["w_q", "w_s"], ["w"], axis=axis),
        node(op_type, ["x_dq", "w"], ["r"], **attributes),
        *through("r", "y"),
    ]
    constants = {
        **parameters("x", -3, 3),
        **parameters("r", -30, 30),
        "w_q": np.random.default_rng(0).integers(-127, 127, (6, 6)).astype(np.int8),
        "w_s": np.linspace(0.01, 0.2, 6, dtype=np.float32),
    }
    made = model(nodes, [value("x", [4, 6])], [value("y", [4, 6])], constants, opset=21, ir=10)
    if floats:
        assert_rewritten(made, {"x": noise(4, 6)}, "quantized-weights-float", within=0)
    else:
        assert assert_left(made, {"x": noise(4, 6)}, "quantized-weights-float") == []


@pytest.mark.parametrize("second", [[5, 7], [1, 2, 3, 5, 7], [3, 5, 7]])
def test_matmul_of_five_dimensions(second: list[int]) -> None:
    nodes = [
        *through("x", "x_dq"),
        *through("k", "k_dq"),
        node("MatMul", ["x_dq", "k_dq"], ["r"]),
        *through("r", "y"),
    ]
    constants = {**parameters("x", -3, 3), **parameters("k", -4, 4), **parameters("r", -9, 9)}
    inputs = [value("x", [1, 2, 3, 4, 5]), value("k", second)]
    made = model(nodes, inputs, [value("y", [1, 2, 3, 4, 7])], constants, opset=21, ir=10)
    feeds = {"x": noise(1, 2, 3, 4, 5), "k": noise(*second, seed=1)}
    after = assert_rewritten(made, feeds, "matmul-rank", within=0)
    assert between_quantizers(after).count("MatMul") == 1
    [product] = [entry for entry in after.graph.node if entry.op_type == "MatMul"]
    shapes = {entry.name: len(entry.type.tensor_type.shape.dim) for entry in after.graph.value_info}
    assert max(shapes[name] for name in (*product.input, *product.output)) <= 3
