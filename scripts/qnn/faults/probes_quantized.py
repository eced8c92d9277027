"""The probes in QDQ form: activations of 8 or 16 bits, weights of 8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy
from onnx import NodeProto, TensorProto, helper

from qnn.faults.probes import Array, ProbeGraph, graph, noise

_OPSET = 21


class _Builder:
    """Collects nodes and constants of a quantized graph."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Any] = {}

    def add(self, op_type: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [output], name=f"{op_type}_{output}", **attributes))
        return output

    def activation(self, name: str, low: float, high: float, output: str = "") -> str:
        """The tensor behind Q and DQ of the range."""
        steps = 2**self.bits - 1
        scale = numpy.float32((high - low) / steps)
        zero = numpy.array(round(-low / scale), numpy.uint16 if self.bits == 16 else numpy.uint8)
        self.constants |= {f"{name}_s": scale, f"{name}_z": zero}
        self.add("QuantizeLinear", [name, f"{name}_s", f"{name}_z"], f"{name}_q")
        return self.add("DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], output or f"{name}_dq")

    def weights(self, name: str, values: Array, axis: int | None = None) -> str:
        """int8 weights, per channel of an axis or not."""
        rest = tuple(i for i in range(values.ndim) if i != axis) if axis is not None else None
        scale = (numpy.abs(values).max(axis=rest) / 127).astype(numpy.float32)
        shape = [-1 if i == axis else 1 for i in range(values.ndim)]
        divided = values / (scale if axis is None else scale.reshape(shape))
        stored = numpy.clip(numpy.round(divided), -127, 127).astype(numpy.int8)
        self.constants |= {f"{name}_q": stored, f"{name}_s": scale, f"{name}_z": numpy.zeros(scale.shape, numpy.int8)}
        attributes = {} if axis is None else {"axis": axis}
        return self.add("DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], f"{name}_dq", **attributes)

    def finish(self, feeds: Mapping[str, Array]) -> ProbeGraph:
        return graph(self.nodes, feeds, self.constants, opset=_OPSET)


def _silu() -> ProbeGraph:
    made = _Builder(16)
    conv = [made.activation("x", -4, 4), made.weights("w", noise(8, 3, 3, 3, seed=1, scale=0.3))]
    made.add("Conv", conv, "a", pads=[1] * 4)
    made.activation("a", -6, 6)
    made.add("Sigmoid", ["a_dq"], "s")
    made.activation("s", 0, 1)
    made.add("Mul", ["a_dq", "s_dq"], "m")
    made.activation("m", -0.3, 6, "y")
    return made.finish({"x": noise(1, 3, 12, 12)})


def _cum_sum() -> ProbeGraph:
    made = _Builder(8)
    made.constants["axis"] = numpy.array(1)
    made.add("CumSum", [made.activation("x", 0, 20), "axis"], "t")
    made.activation("t", 0, 20480, "y")
    return made.finish({"x": numpy.full((1, 1024), 20, numpy.float32)})


def _gather() -> ProbeGraph:
    made = _Builder(8)
    made.constants["none"] = numpy.float32(0)
    made.add("Gather", [made.weights("t", noise(50, 16, seed=1)), "ids"], "e", axis=0)
    # Q with the table's own parameters, as quantizers write it for an operator that moves data.
    made.add("QuantizeLinear", ["e", "t_s", "t_z"], "e_q")
    made.add("DequantizeLinear", ["e_q", "t_s", "t_z"], "y")
    del made.constants["none"]
    return made.finish({"ids": numpy.array([[0, 49, -1, -50, 7, 3]], numpy.int64)})


def _layer_norm() -> ProbeGraph:
    made = _Builder(8)
    made.add("LayerNormalization", [made.activation("x", -3, 3), made.weights("g", noise(64, seed=1))], "n", axis=-1)
    made.activation("n", -6, 6, "y")
    return made.finish({"x": noise(1, 16, 64)})


def _layer_norm_two_axes() -> ProbeGraph:
    made = _Builder(8)
    inputs = [made.activation("x", -3, 3), made.weights("g", noise(6, 8, seed=1))]
    made.add("LayerNormalization", inputs, "n", axis=-2)
    made.activation("n", -6, 6, "y")
    return made.finish({"x": noise(2, 5, 6, 8)})


def _resize(shape: tuple[int, ...], scales: tuple[float, ...]) -> ProbeGraph:
    made = _Builder(8)
    made.constants["scales"] = numpy.array(scales, numpy.float32)
    made.add("Resize", [made.activation("x", -4, 4), "", "scales"], "r", mode="linear")
    made.activation("r", -4, 4, "y")
    return made.finish({"x": noise(*shape)})


def _average_pool(size: int, kernel: int, stride: int, pad: int, **counting: int) -> ProbeGraph:
    made = _Builder(8)
    shape = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    made.add("AveragePool", [made.activation("x", 0, 4)], "p", **shape, **counting)
    made.activation("p", 0, 4, "y")
    return made.finish({"x": numpy.abs(noise(1, 8, size, size)) + numpy.float32(0.3)})


def _shared_constant() -> ProbeGraph:
    """x · clip(x + 3, 0, 6) / 6, with 3 and 6 stored as one 127."""
    made = _Builder(8)
    made.constants |= {"k_q": numpy.array([127], numpy.int8), "k_z": numpy.int8(0), "least": numpy.float32(0)}
    made.constants |= {"three_s": numpy.float32(3 / 127), "six_s": numpy.float32(6 / 127), "most": numpy.float32(6)}
    for name in ("three", "six"):
        made.add("DequantizeLinear", ["k_q", f"{name}_s", "k_z"], name)
    x = made.activation("x", -4, 4)
    made.add("Add", [x, "three"], "a")
    made.add("Clip", [made.activation("a", -1, 7), "least", "most"], "c")
    made.add("Mul", [x, made.activation("c", 0, 6)], "m")
    made.add("Div", [made.activation("m", -3, 24), "six"], "d")
    made.activation("d", -0.5, 4, "y")
    return made.finish({"x": noise(1, 8, 10, 12)})


def _matmul_per_channel() -> ProbeGraph:
    made = _Builder(16)
    made.add("MatMul", [made.activation("x", -4, 4), made.weights("w", noise(1, 1, 32, 42, seed=1), axis=3)], "m")
    made.activation("m", -24, 24, "y")
    return made.finish({"x": noise(1, 6, 10, 32)})


def _conv_transpose(axis: int, group: int) -> ProbeGraph:
    made = _Builder(16)
    weights = made.weights("w", noise(8, 2, 4, 4, seed=1, scale=0.3), axis=axis)
    made.add("ConvTranspose", [made.activation("x", -4, 4), weights], "t", group=group, strides=[2, 2], pads=[1] * 4)
    made.activation("t", -8, 8, "y")
    return made.finish({"x": noise(1, 8, 7, 9)})


def _clipped_bias() -> ProbeGraph:
    made = _Builder(8)
    made.constants |= {
        "b_q": numpy.array([2**31 - 1, -(2**31)], numpy.int32),
        "b_s": numpy.float32(8.9e-11),
        "b_z": numpy.int32(0),
    }
    inputs = [made.activation("x", -60, 60), made.weights("w", noise(2, 3, 3, 3, seed=1, scale=1e-8))]
    inputs.append(made.add("DequantizeLinear", ["b_q", "b_s", "b_z"], "b"))
    made.add("Conv", inputs, "c", pads=[1] * 4)
    made.activation("c", -4.5, 5, "y")
    return made.finish({"x": noise(1, 3, 8, 8, scale=20)})


def _blockwise() -> ProbeGraph:
    made = _Builder(16)
    stored = numpy.random.default_rng(1).integers(-7, 8, (64, 32)).astype(numpy.int8)
    made.constants["w_s"] = (numpy.abs(noise(2, 32, seed=2)) * 0.02 + 0.05).astype(numpy.float32)
    made.add("DequantizeLinear", ["w_q", "w_s"], "w", axis=0, block_size=32)
    made.add("MatMul", [made.activation("x", -4, 4), "w"], "m")
    made.activation("m", -12, 12, "y")
    found = made.finish({"x": noise(1, 8, 64)})
    weights = helper.make_tensor("w_q", TensorProto.INT4, stored.shape, stored.reshape(-1).tolist())
    found.model.graph.initializer.append(weights)
    return found


QUANTIZED_PROBES: Mapping[str, Callable[[], ProbeGraph]] = {
    "silu-16-bits": _silu,
    "cum-sum-8-bits": _cum_sum,
    "gather-8-bits-negative": _gather,
    "layer-norm-int8-scale": _layer_norm,
    "layer-norm-two-axes-8-bits": _layer_norm_two_axes,
    "resize-scale-8-bits": lambda: _resize((1, 8, 10, 12), (1, 1, 0.65, 0.65)),
    "resize-3d-8-bits": lambda: _resize((1, 4, 5, 6, 7), (1, 1, 2, 2, 2)),
    "average-pool-8-bits": lambda: _average_pool(10, 5, 3, 2),
    "average-pool-counted-8-bits": lambda: _average_pool(10, 2, 2, 1, count_include_pad=1),
    "average-pool-counted-ceil-8-bits": lambda: _average_pool(10, 5, 2, 1, count_include_pad=1, ceil_mode=1),
    "shared-constant": _shared_constant,
    "matmul-per-channel": _matmul_per_channel,
    "conv-transpose-groups": lambda: _conv_transpose(axis=1, group=8),
    "conv-transpose-axis-0": lambda: _conv_transpose(axis=0, group=1),
    "clipped-bias": _clipped_bias,
    "blockwise-weights": _blockwise,
}
