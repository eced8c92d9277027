"""A Relu behind a Conv of many products becomes Max with 0; behind others, and in a quantized group, it stays."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto

from qnn.prepare.rewrites import conv_wide_relu
from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten

RULE = "conv-wide-relu"
CHANNELS = 8


def behind(after: list[NodeProto], products: int, shape: tuple[int, ...] = (1, 2, 5, 1)) -> ModelProto:
    """A Conv that sums so many products, 8 channels of 5, and nodes from its result c to y."""
    kernel = products // CHANNELS
    weights = {
        "w": noise(2, CHANNELS, kernel, 1, seed=1),
        "s": np.array([0.5, -2], np.float32).reshape(1, 2, 1, 1),
        "ones": np.ones(2, np.float32),
    }
    conv = node("Conv", ["x", "w"], ["c"], pads=[kernel // 2, 0, (kernel - 1) // 2, 0])
    return model([conv, *after], [value("x", (1, CHANNELS, 5, 1))], [value("y", shape)], weights)


FEEDS = {"x": noise(1, CHANNELS, 5, 1, seed=2)}
OVER = conv_wide_relu.PRODUCTS + CHANNELS
RELU = node("Relu", ["c"], ["y"])


def test_one_product_decides() -> None:
    after = assert_rewritten(behind([RELU], OVER), FEEDS, RULE)
    assert operators(after) == ["Conv", "Max"]
    assert assert_left(behind([RELU], conv_wide_relu.PRODUCTS), FEEDS, RULE) == []


@pytest.mark.parametrize(
    ("between", "shape"),
    [
        ([node("Mul", ["c", "s"], ["t"])], (1, 2, 5, 1)),
        ([node("Add", ["s", "c"], ["t"])], (1, 2, 5, 1)),
        ([node("BatchNormalization", ["c", "ones", "ones", "ones", "ones"], ["t"])], (1, 2, 5, 1)),
        ([node("Transpose", ["c"], ["t"], perm=[0, 2, 1, 3])], (1, 5, 2, 1)),
        ([node("MaxPool", ["c"], ["t"], kernel_shape=[2, 1], strides=[2, 1])], (1, 2, 2, 1)),
    ],
)
def test_what_the_compiler_folds_or_moves_over_hides_nothing(between: list[NodeProto], shape: tuple[int, ...]) -> None:
    made = behind([*between, node("Relu", ["t"], ["y"])], OVER, shape)
    assert "Relu" not in operators(assert_rewritten(made, FEEDS, RULE))


def test_a_sum_of_two_tensors_ends_the_way_back() -> None:
    made = behind([node("Sigmoid", ["c"], ["g"]), node("Mul", ["c", "g"], ["t"]), node("Relu", ["t"], ["y"])], OVER)
    assert assert_left(made, FEEDS, RULE) == []


def test_the_other_users_of_the_convs_result_still_read_it() -> None:
    made = behind([node("Relu", ["c"], ["r"]), node("Sub", ["c", "r"], ["y"])], OVER)
    assert operators(assert_rewritten(made, FEEDS, RULE)) == ["Conv", "Max", "Sub"]


def test_a_quantized_group_is_left() -> None:
    made = behind(
        [
            node("Relu", ["c"], ["r"]),
            node("QuantizeLinear", ["r", "scale", "zero"], ["q"]),
            node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        ],
        OVER,
    )
    made.graph.initializer.extend(model([], [], [], {"scale": np.float32(0.5), "zero": np.uint8(0)}).graph.initializer)
    assert assert_left(made, FEEDS, RULE) == []
