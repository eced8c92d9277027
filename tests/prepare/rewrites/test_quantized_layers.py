"""Layers, their weights and activations between DequantizeLinear and QuantizeLinear: the same integers come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from qnn.faults.match import find_faults
from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with
from tests.prepare.rewrites.quantized import alone, between_quantizers, parameters, through


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
