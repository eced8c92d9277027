"""Padding, pooling and normalization in forms that the compiler refuses or gets wrong: rewritten, and the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.prepare.graphs import INT32, INT64, Array, model, node, noise, operators, value
from tests.prepare.rewrites.checks import RELATIVE, assert_left, assert_rewritten, assert_same, prepared_with


def one(
    op: str, x: Array, constants: dict[str, Any] | None = None, *, opset: int = 18, **attributes: Any
) -> ModelProto:
    kind = {"i4": INT32, "i8": INT64}.get(x.dtype.str[1:], 1)
    given = constants or {}
    made = node(op, ["x", *given], ["y"], **attributes)
    kept = {name: array for name, array in given.items() if name != ""}
    return model([made], [value("x", x.shape, kind)], [value("y", None, kind)], kept, opset=opset)


PADS = {"p": np.array([2, 1])}


@pytest.mark.parametrize(
    ("x", "constants"),
    [
        (noise(1, 3, 8, 8), {**PADS, "v": np.float32(2), "a": np.array([-1])}),
        (noise(1, 3, 8, 8), {**PADS, "": None, "a": np.array([1])}),
        (np.arange(-9, 9, dtype=np.int32).reshape(3, 6) * 70001, {"p": np.array([1, -2, 0, 3]), "v": np.int32(-1)}),
        (np.arange(18).reshape(3, 6), {"p": np.array([0, 2, 2, 0])}),
    ],
)
def test_constant_pad(x: Array, constants: dict[str, Any]) -> None:
    assert_rewritten(one("Pad", x, constants), {"x": x}, "pad-plain")


@pytest.mark.parametrize(
    ("layer", "attributes", "number", "rewritten"),
    [
        ("Conv", {"pads": [1] * 4}, 1.0, True),
        ("Conv", {"auto_pad": "SAME_UPPER"}, 1.0, True),
        ("Conv", {"pads": [1] * 4}, 0.0, False),
        ("Conv", {}, 1.0, False),
        ("MaxPool", {"kernel_shape": [3, 3]}, 0.0, True),
        ("MaxPool", {"kernel_shape": [3, 3]}, -1e38, False),
        ("MaxPool", {"kernel_shape": [2, 2]}, -1e38, True),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, float("-inf"), True),
    ],
)
def test_pad_before_a_layer(layer: str, attributes: dict[str, Any], number: float, *, rewritten: bool) -> None:
    weights = {"w": noise(4, 3, 3, 3)} if layer == "Conv" else {}
    nodes = [node("Pad", ["x", "p", "v"], ["q"]), node(layer, ["q", *weights], ["y"], **attributes)]
    constants = {"p": np.array([0, 0, 1, 0, 0, 0, 1, 2]), "v": np.float32(number), **weights}
    made = model(nodes, [value("x", [1, 3, 9, 9])], [value("y", None)], constants)
    feeds = {"x": noise(1, 3, 9, 9) - np.float32(3)}
    if rewritten:
        assert "Pad" not in operators(assert_rewritten(made, feeds, "pad-plain"))
    else:
        assert assert_left(made, feeds, "pad-plain") == []


def test_pad_before_max_pool_behind_relu_is_left() -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Pad", ["r", "p"], ["q"]),
        node("MaxPool", ["q"], ["y"], kernel_shape=[3, 3]),
    ]
    made = model(nodes, [value("x", [1, 3, 9, 9])], [value("y", None)], {"p": np.array([0, 0, 0, 0, 0, 0, 1, 1])})
    assert assert_left(made, {"x": noise(1, 3, 9, 9)}, "pad-plain") == []


def test_pad_with_a_computed_value() -> None:
    nodes = [node("ReduceMax", ["x"], ["v"], keepdims=0), node("Pad", ["x", "p", "v"], ["y"])]
    made = model(nodes, [value("x", [2, 5])], [value("y", None)], {"p": np.array([0, 2, 1, -1])})
    assert "Where" in operators(assert_rewritten(made, {"x": noise(2, 5)}, "pad-plain"))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ((13, 12), {"pads": [0, 1, 1, 2], "strides": [2, 1]}),
        ((13, 12), {"ceil_mode": 1, "strides": [2, 2]}),
        ((13, 12), {"dilations": [2, 3]}),
        ((14,), {"pads": [1, 0]}),
        ((6, 7, 8), {"pads": [1, 0, 1, 0, 1, 0]}),
    ],
)
def test_lp_pool(order: int, sizes: tuple[int, ...], attributes: dict[str, Any]) -> None:
    x = noise(2, 3, *sizes)
    made = one("LpPool", x, p=order, kernel_shape=[3] * len(sizes), **attributes)
    assert_rewritten(made, {"x": x}, "lp-pool-written-out")


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_global_lp_pool(order: int, opset: int) -> None:
    x = noise(2, 3, 5, 6)
    assert_rewritten(one("GlobalLpPool", x, p=order, opset=opset), {"x": x}, "lp-pool-written-out")


def test_plain_lp_pool_is_left() -> None:
    x = noise(1, 3, 8, 8)
    assert assert_left(one("LpPool", x, kernel_shape=[2, 2], strides=[2, 2]), {"x": x}, "lp-pool-written-out") == []


@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ((15, 14), {"dilations": [2, 3], "pads": [2, 1, 2, 2], "strides": [2, 1]}),
        ((15, 14), {"dilations": [2, 2], "ceil_mode": 1, "strides": [2, 2]}),
        ((31,), {"dilations": [4], "pads": [2, 2]}),
        ((8, 9, 10), {"dilations": [2, 1, 3]}),
    ],
)
def test_dilated_max_pool(sizes: tuple[int, ...], attributes: dict[str, Any]) -> None:
    x = noise(2, 3, *sizes) - np.float32(5)
    made = one("MaxPool", x, opset=17, kernel_shape=[3] * len(sizes), **attributes)
    assert "MaxPool" not in operators(assert_rewritten(made, {"x": x}, "max-pool-plain"))


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ((15, 15), {"pads": [1] * 4}),
        ((15, 15), {"dilations": [2, 3], "pads": [2, 0, 1, 2]}),
        ((30,), {"dilations": [3], "strides": [2]}),
    ],
)
def test_average_pool(sizes: tuple[int, ...], attributes: dict[str, Any], counted: int) -> None:
    x = noise(2, 3, *sizes)
    written = {"kernel_shape": [3] * len(sizes), "count_include_pad": counted, **attributes}
    assert_rewritten(one("AveragePool", x, opset=19, **written), {"x": x}, "average-pool-padded")


@pytest.mark.parametrize(("shape", "opset"), [((2, 8, 30), 21), ((1, 8, 4, 5, 6), 21), ((2, 8, 5, 6), 18)])
def test_group_norm(shape: tuple[int, ...], opset: int) -> None:
    parameters = {"s": noise(8 if opset == 21 else 2, seed=1), "b": noise(8 if opset == 21 else 2, seed=2)}
    made = one("GroupNormalization", noise(*shape), parameters, opset=opset, num_groups=2, epsilon=0.01)
    changes, after = prepared_with(made, {"x": noise(*shape)})
    assert ": norm-rank: InstanceNormalization of its groups" in changes[0]
    assert_same(made, after, {"x": noise(*shape)}, RELATIVE)


@pytest.mark.parametrize("fed", [(), ("u", "v"), ("s", "b", "u", "v")])
def test_batch_norm_of_five_dimensions_and_with_parameters_fed(fed: tuple[str, ...]) -> None:
    parameters = {"s": noise(4, seed=1), "b": noise(4, seed=2), "u": noise(4, seed=3), "v": np.abs(noise(4)) + 1}
    feeds = {"x": noise(2, 4, 3, 5, 6), **{name: parameters[name] for name in fed}}
    cell = node("BatchNormalization", ["x", *parameters], ["y"], epsilon=0.01)
    kept = {name: array for name, array in parameters.items() if name not in fed}
    made = model([cell], [value(name, array.shape) for name, array in feeds.items()], [value("y", None)], kept)
    assert_rewritten(made, feeds, "norm-rank")


def test_instance_norm_of_five_dimensions() -> None:
    x, parameters = noise(2, 4, 3, 5, 6), {"s": noise(4, seed=1), "b": noise(4, seed=2)}
    assert_rewritten(one("InstanceNormalization", x, parameters, epsilon=0.01), {"x": x}, "norm-rank")
