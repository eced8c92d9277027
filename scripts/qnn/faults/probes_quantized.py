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


def _resize(shape: tuple[int, ...], scales: tuple[float, ...], end: float = 4) -> ProbeGraph:
    made = _Builder(8)
    made.constants["scales"] = numpy.array(scales, numpy.float32)
    made.add("Resize", [made.activation("x", -4, 4), "", "scales"], "r", mode="linear")
    made.activation("r", -end, end, "y")
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


def _conv_clip(bits: int, *, apart: bool) -> ProbeGraph:
    """Conv and Clip to 0 … 1.5, quantized from -1 to 4; with the Conv's result quantized as well, or not."""
    made = _Builder(bits)
    made.constants |= {"low": numpy.float32(0), "high": numpy.float32(1.5)}
    conv = [made.activation("x", -4, 4), made.weights("w", noise(8, 3, 3, 3, seed=1, scale=0.3), axis=0)]
    made.add("Conv", conv, "a", pads=[1] * 4)
    made.add("Clip", [made.activation("a", -5, 5) if apart else "a", "low", "high"], "c")
    made.activation("c", -1, 4, "y")
    return made.finish({"x": noise(1, 3, 12, 12)})


def _weights_only(block: int) -> ProbeGraph:
    made = _Builder(8)
    stored = numpy.random.default_rng(1).integers(-127, 127, (64, 32)).astype(numpy.int8)
    shape = (64 // block, 32) if block else (32,)
    made.constants |= {"w_q": stored, "w_s": numpy.full(shape, 0.004, numpy.float32)}
    made.add("DequantizeLinear", ["w_q", "w_s"], "w", **({"axis": 0, "block_size": block} if block else {"axis": 1}))
    made.add("MatMul", ["x", "w"], "y")
    return made.finish({"x": noise(1, 16, 64)})


def _summed_axis() -> ProbeGraph:
    made = _Builder(8)
    weights = noise(32, 24, seed=1, scale=0.3) * numpy.linspace(0.1, 1, 32, dtype=numpy.float32)[:, None]
    made.add("MatMul", [made.activation("x", -4, 4), made.weights("w", weights, axis=0)], "m")
    made.activation("m", -6, 6, "y")
    return made.finish({"x": noise(1, 16, 32)})


def _signed(op_type: str, dtype: type, *, seen: bool = False, **attributes: Any) -> ProbeGraph:
    """One operator of signed activations, or of a graph input that is (seen)."""
    made = _Builder(8)
    steps = numpy.iinfo(dtype).max
    made.constants |= {"x_s": numpy.float32(4 / steps), "r_s": numpy.float32(1 / steps), "z": dtype(0)}
    if not seen:
        made.add("QuantizeLinear", ["x", "x_s", "z"], "x_q")
    made.add("DequantizeLinear", ["x" if seen else "x_q", "x_s", "z"], "x_dq")
    made.add(op_type, ["x_dq"], "r", **attributes)
    made.add("QuantizeLinear", ["r", "r_s", "z"], "r_q")
    made.add("DequantizeLinear", ["r_q", "r_s", "z"], "y")
    x = numpy.clip(noise(1, 8, 10, 12), -3.9, 3.9)
    return made.finish({"x": numpy.round(x * steps / 4).astype(dtype) if seen else x})


def _one(op_type: str, bits: int, result: tuple[float, float], **attributes: Any) -> ProbeGraph:
    made = _Builder(bits)
    made.add(op_type, [made.activation("x", 0, 4)], "r", **attributes)
    made.activation("r", *result, "y")
    return made.finish({"x": numpy.clip(numpy.abs(noise(1, 8, 10, 12)), 0.5, 3.9)})


def _activations_by_channel() -> ProbeGraph:
    made = _Builder(8)
    made.constants |= {"s": numpy.linspace(0.02, 0.05, 8, dtype=numpy.float32), "z": numpy.full(8, 128, numpy.uint8)}
    made.add("QuantizeLinear", ["x", "s", "z"], "x_q", axis=1)
    made.add("DequantizeLinear", ["x_q", "s", "z"], "x_dq", axis=1)
    made.add("Conv", ["x_dq", made.weights("w", noise(8, 8, 3, 3, seed=1, scale=0.3), axis=0)], "c", pads=[1] * 4)
    made.activation("c", -8, 8, "y")
    return made.finish({"x": noise(1, 8, 10, 12)})


def _activations_of_4_bits() -> ProbeGraph:
    made = _Builder(8)
    made.constants["s"] = numpy.float32(0.5)
    made.add("QuantizeLinear", ["x", "s", "z"], "x_q")
    made.add("DequantizeLinear", ["x_q", "s", "z"], "x_dq")
    made.add("MatMul", ["x_dq", made.weights("w", noise(32, 24, seed=1))], "m")
    made.activation("m", -20, 20, "y")
    found = made.finish({"x": noise(1, 16, 32)})
    found.model.graph.initializer.append(helper.make_tensor("z", TensorProto.UINT4, [], [8]))
    return found


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
    "resize-3d-8-bits": lambda: _resize((1, 4, 5, 6, 7), (1, 1, 2, 2, 2), end=3),
    "average-pool-8-bits": lambda: _average_pool(10, 5, 3, 2),
    "average-pool-counted-8-bits": lambda: _average_pool(10, 2, 2, 1, count_include_pad=1),
    "average-pool-counted-ceil-8-bits": lambda: _average_pool(10, 5, 2, 1, count_include_pad=1, ceil_mode=1),
    "relu-wide-range-8-bits": lambda: _conv_clip(8, apart=False),
    "clip-wide-range-16-bits": lambda: _conv_clip(16, apart=True),
    "weights-only": lambda: _weights_only(0),
    "weights-only-blocks": lambda: _weights_only(32),
    "weights-summed-axis": _summed_axis,
    "softmax-int8": lambda: _signed("Softmax", numpy.int8, axis=-1),
    "softmax-int8-seen": lambda: _signed("Softmax", numpy.int8, seen=True, axis=-1),
    "average-pool-int16": lambda: _signed("AveragePool", numpy.int16, kernel_shape=[2, 2], strides=[2, 2]),
    "space-to-depth-8-bits": lambda: _one("SpaceToDepth", 8, (0, 3.2), blocksize=2),
    "log-16-bits": lambda: _one("Log", 16, (-0.7, 1.4)),
    "activations-by-channel": _activations_by_channel,
    "activations-4-bits": _activations_of_4_bits,
    "shared-constant": _shared_constant,
    "matmul-per-channel": _matmul_per_channel,
    "conv-transpose-groups": lambda: _conv_transpose(axis=1, group=8),
    "conv-transpose-axis-0": lambda: _conv_transpose(axis=0, group=1),
    "clipped-bias": _clipped_bias,
    "blockwise-weights": _blockwise,
}
