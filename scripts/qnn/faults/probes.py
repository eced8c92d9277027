"""A tiny graph for each known fault, with inputs that show it.

Names are those of faults.yaml. Everything is drawn from a fixed seed, so a probe is the same graph every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Array = NDArray[Any]
_OPSET = 17


@dataclass(frozen=True)
class ProbeGraph:
    """A model and the arrays of its inputs, by name."""

    model: ModelProto
    feeds: Mapping[str, Array]


def noise(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """float32 from a normal distribution."""
    return (numpy.random.default_rng(seed).standard_normal(shape) * scale).astype(numpy.float32)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """A node named after its operator and first output."""
    return helper.make_node(op_type, inputs, outputs, name=f"{op_type}_{outputs[0]}", **attributes)


def graph(
    nodes: Sequence[NodeProto],
    feeds: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    outputs: Mapping[str, int] | None = None,
    opset: int = _OPSET,
) -> ProbeGraph:
    """A model of these nodes; outputs are the float tensor y unless given (name → type)."""
    arrays = {name: numpy.asarray(array) for name, array in feeds.items()}
    made = helper.make_graph(
        nodes,
        "probe",
        [_value(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in arrays.items()],
        [_value(name, dtype, None) for name, dtype in (outputs or {"y": TensorProto.FLOAT}).items()],
        [numpy_helper.from_array(numpy.asarray(array), name) for name, array in (constants or {}).items()],
    )
    domains = sorted({entry.domain for entry in nodes if entry.domain})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return ProbeGraph(helper.make_model(made, opset_imports=imports, ir_version=10), arrays)


def one(
    op_type: str, x: Array, *, opset: int = _OPSET, dtype: int = TensorProto.FLOAT, **attributes: Any
) -> ProbeGraph:
    """One operator on one input."""
    return graph([node(op_type, ["x"], ["y"], **attributes)], {"x": x}, outputs={"y": dtype}, opset=opset)


def between_convs(
    middle: Sequence[NodeProto], constants: Mapping[str, Any] | None = None, *, opset: int = 21
) -> ProbeGraph:
    """Nodes from a to m between two Convs of 8 channels."""
    nodes = [node("Conv", ["x", "w1"], ["a"], pads=[1] * 4), *middle, node("Conv", ["m", "w2"], ["y"], pads=[1] * 4)]
    weights = {"w1": noise(8, 3, 3, 3, scale=0.3), "w2": noise(4, 8, 3, 3, seed=1, scale=0.3)}
    return graph(nodes, {"x": noise(1, 3, 12, 12, seed=2)}, {**weights, **(constants or {})}, opset=opset)


def _value(name: str, dtype: int, shape: Sequence[int] | None) -> Any:
    return helper.make_tensor_value_info(name, dtype, shape)


def _wide_conv(after: Sequence[NodeProto]) -> ProbeGraph:
    """A Conv of 448 channels and a kernel of 64, and nodes that make y of its result c."""
    weights = {"w": noise(32, 448, 64, 1, seed=1, scale=0.006), "s": numpy.float32(0.5)}
    conv = node("Conv", ["x", "w"], ["c"], pads=[31, 0, 32, 0])
    return graph([conv, *after], {"x": noise(1, 448, 4, 1)}, weights)


def _resize(
    shape: Sequence[int], *, sizes: Sequence[int] = (), scales: Sequence[float] = (), **attributes: Any
) -> ProbeGraph:
    constants: dict[str, Any] = {"sizes": numpy.array(sizes, numpy.int64)} if sizes else {}
    if scales:
        constants["scales"] = numpy.array(scales, numpy.float32)
    inputs = ["x", "", "", "sizes"] if sizes else ["x", "", "scales"]
    return graph([node("Resize", inputs, ["y"], **attributes)], {"x": noise(*shape)}, constants)


def _pad(shape: Sequence[int], pads: Sequence[int], mode: str, *, opset: int = _OPSET) -> ProbeGraph:
    constants = {"pads": numpy.array(pads, numpy.int64)}
    return graph([node("Pad", ["x", "pads"], ["y"], mode=mode)], {"x": noise(*shape)}, constants, opset=opset)


def _conv_transpose(x: Sequence[int], w: Sequence[int], **attributes: Any) -> ProbeGraph:
    return graph([node("ConvTranspose", ["x", "w"], ["y"], **attributes)], {"x": noise(*x)}, {"w": noise(*w, seed=1)})


def _cast(x: Array, dtype: int) -> ProbeGraph:
    return one("Cast", x, dtype=dtype, to=dtype)


def _integers(op_type: str, values: Sequence[int], other: int, **attributes: Any) -> ProbeGraph:
    return graph(
        [node(op_type, ["x", "k"], ["y"], **attributes)],
        {"x": numpy.array([values], numpy.int32)},
        {"k": numpy.array([[other]], numpy.int32)},
        {"y": TensorProto.INT32},
    )


def _float_to_int() -> ProbeGraph:
    nodes = [node("Mul", ["x", "two"], ["d"]), node("Cast", ["d"], ["i"], to=TensorProto.INT32)]
    nodes.append(node("Cast", ["i"], ["y"], to=TensorProto.FLOAT))
    x = numpy.array([[0.4, 0.85, 1.45, -0.4, -0.85, 3.95, 7.3, -2.9]], numpy.float32)
    return graph(nodes, {"x": x}, {"two": numpy.float32(2)})


def _compare() -> ProbeGraph:
    nodes = [node("Cast", ["a"], ["f"], to=TensorProto.FLOAT), node("ArgMax", ["f"], ["y"], axis=1, keepdims=0)]
    return graph(nodes, {"a": numpy.array([[1, 65504, 65519, 3]], numpy.int32)}, outputs={"y": TensorProto.INT64})


def _written(kind: str) -> ProbeGraph:
    x = numpy.linspace(-15, 15, 64, dtype=numpy.float32).reshape(2, 32)
    if kind == "softplus":
        nodes = [node("Exp", ["x"], ["e"]), node("Add", ["e", "one"], ["s"]), node("Log", ["s"], ["y"])]
        return graph(nodes, {"x": x}, {"one": numpy.float32(1)})
    if kind == "softmax":
        nodes = [node("ReduceMax", ["x"], ["m"], axes=[-1]), node("Sub", ["x", "m"], ["d"]), node("Exp", ["d"], ["e"])]
        nodes += [node("ReduceSum", ["e", "axis"], ["s"]), node("Div", ["e", "s"], ["y"])]
        return graph(nodes, {"x": x * 5}, {"axis": numpy.array([-1])})
    return graph([node("ReduceLogSumExp", ["x"], ["y"], axes=[-1])], {"x": noise(1, 8, 64, scale=20)})


def _top_k() -> ProbeGraph:
    x = numpy.array([[0.0] * 10 + [1.0] * 10 + [0.0] * 44], numpy.float32)
    nodes = [node("TopK", ["x", "k"], ["v", "y"])]
    return graph(nodes, {"x": x}, {"k": numpy.array([6])}, {"v": TensorProto.FLOAT, "y": TensorProto.INT64})


def _layer_norm() -> ProbeGraph:
    constants = {"g": noise(6, 8, seed=1), "b": noise(6, 8, seed=2)}
    return graph([node("LayerNormalization", ["x", "g", "b"], ["y"], axis=-2)], {"x": noise(2, 5, 6, 8)}, constants)


def _matmul_5d() -> ProbeGraph:
    return graph([node("MatMul", ["x", "w"], ["y"])], {"x": noise(1, 2, 3, 4, 5)}, {"w": noise(5, 7, seed=1)})


def _einsum() -> ProbeGraph:
    feeds = {"p": noise(1, 4, 6, 7), "k": noise(1, 4, 7, 8, seed=1)}
    return graph([node("Einsum", ["p", "k"], ["y"], equation="bhij,bhjd->bihd")], feeds)


def _fed_mask() -> ProbeGraph:
    nodes = [node("Add", ["s", "m"], ["a"]), node("Softmax", ["a"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["y"])]
    mask = numpy.triu(numpy.full((6, 6), -3.4e38, numpy.float32), 1)
    mask[4] = -3.4e38
    return graph(nodes, {"s": noise(1, 2, 6, 6), "m": mask.reshape(1, 1, 6, 6)}, {"v": noise(1, 2, 6, 4, seed=1)})


def _masked_rows() -> ProbeGraph:
    """Left padding under a causal mask, as PyTorch exports it: the first rows of the second sample see nothing."""
    nodes = [
        node("Less", ["start", "place"], ["padded"]),
        node("And", ["padded", "causal"], ["kept"]),
        node("Where", ["kept", "zero", "low"], ["m"]),
        node("MatMul", ["x", "w"], ["s"]),
        node("Add", ["s", "m"], ["a"]),
        node("Softmax", ["a"], ["p"], axis=-1),
        node("IsNaN", ["p"], ["none"]),
        node("Where", ["none", "zero", "p"], ["q"]),
        node("MatMul", ["q", "v"], ["y"]),
    ]
    constants = {
        "place": numpy.arange(6, dtype=numpy.float32),
        "causal": numpy.tril(numpy.ones((6, 6), numpy.bool_)),
        "zero": numpy.float32(0),
        "low": numpy.float32(-numpy.inf),
        "w": noise(6, 6, seed=1),
        "v": noise(2, 2, 6, 4, seed=2),
    }
    start = numpy.array([-0.5, 2.5], numpy.float32).reshape(2, 1, 1, 1)
    return graph(nodes, {"x": noise(2, 2, 6, 6), "start": start}, constants)


def _fed_compare() -> ProbeGraph:
    nodes = [node("Less", ["x", "c"], ["k"]), node("Cast", ["k"], ["y"], to=TensorProto.FLOAT)]
    return graph(nodes, {"x": _numbers(-3.4e38, -1e9, -70000, -40000, -1.5, -0.5, 0, 1e9)}, {"c": numpy.float32(-1)})


def _rank_6() -> ProbeGraph:
    nodes = [node("Reshape", ["x", "s"], ["a"]), node("Add", ["a", "b"], ["c"])]
    nodes.append(node("ReduceSum", ["c", "axes"], ["y"], keepdims=0))
    constants = {"s": numpy.array([2, 3, 4, 5, 3, 2]), "b": noise(1, 3, 1, 5, 3, 1), "axes": numpy.array([1, 4])}
    return graph(nodes, {"x": noise(2, 3, 4, 5, 6)}, constants)


def _lstm() -> ProbeGraph:
    constants = {"w": noise(1, 40, 8), "r": noise(1, 40, 10, seed=1), "n": numpy.array([12, 7, 3], numpy.int32)}
    return graph([node("LSTM", ["x", "w", "r", "", "n"], ["y"], hidden_size=10)], {"x": noise(12, 3, 8)}, constants)


def _grid_sample() -> ProbeGraph:
    feeds = {"x": noise(1, 4, 12, 16), "g": numpy.tanh(noise(1, 9, 7, 2, seed=1))}
    return graph([node("GridSample", ["x", "g"], ["y"], mode="bicubic")], feeds)


def _long_sum() -> ProbeGraph:
    x = numpy.full((1, 8000), 0.0115, numpy.float32)
    return graph([node("CumSum", ["x", "axis"], ["y"])], {"x": x}, {"axis": numpy.array(1)})


def _log_floor() -> ProbeGraph:
    x = numpy.logspace(-12, 2, 64, dtype=numpy.float32).reshape(1, 64)
    nodes = [node("Max", ["x", "least"], ["m"]), node("Log", ["m"], ["y"])]
    return graph(nodes, {"x": x}, {"least": numpy.float32(1e-10)})


def _reduce_l2() -> ProbeGraph:
    return graph([node("ReduceL2", ["x"], ["y"], axes=[-1])], {"x": noise(1, 8, 768, scale=20)})


def _log_softmax() -> ProbeGraph:
    nodes = [node("Add", ["s", "m"], ["a"]), node("LogSoftmax", ["a"], ["p"], axis=-1), node("Exp", ["p"], ["y"])]
    mask = numpy.triu(numpy.full((16, 16), -3.4e38, numpy.float32), 1)
    return graph(nodes, {"s": noise(1, 4, 16, 16, scale=3)}, {"m": mask})


def _log_sigmoid() -> ProbeGraph:
    x = numpy.linspace(-10, 10, 64, dtype=numpy.float32).reshape(1, 64)
    return graph([node("Sigmoid", ["x"], ["s"]), node("Log", ["s"], ["y"])], {"x": x})


def _tanh_written() -> ProbeGraph:
    x = numpy.linspace(-30, 30, 64, dtype=numpy.float32).reshape(1, 64)
    nodes = [node("Mul", ["x", "two"], ["d"]), node("Exp", ["d"], ["e"]), node("Sub", ["e", "one"], ["a"])]
    nodes += [node("Add", ["e", "one"], ["b"]), node("Div", ["a", "b"], ["y"])]
    return graph(nodes, {"x": x}, {"two": numpy.float32(2), "one": numpy.float32(1)})


def _norm_written() -> ProbeGraph:
    nodes = [node("Mul", ["x", "x"], ["q"]), node("ReduceSum", ["q", "axis"], ["s"]), node("Sqrt", ["s"], ["y"])]
    return graph(nodes, {"x": noise(1, 8, 768, scale=40)}, {"axis": numpy.array([-1])})


def _variance() -> ProbeGraph:
    nodes = [node("Mul", ["x", "x"], ["q"]), node("ReduceMean", ["q"], ["a"], axes=[-1])]
    nodes += [node("ReduceMean", ["x"], ["m"], axes=[-1]), node("Pow", ["m", "two"], ["b"])]
    return graph(
        [*nodes, node("Sub", ["a", "b"], ["y"])], {"x": noise(1, 16, 64, scale=2) + 50}, {"two": numpy.float32(2)}
    )


def _gemm_alpha() -> ProbeGraph:
    constants = {"w": noise(32, 8, seed=1), "c": noise(8, seed=2)}
    return graph([node("Gemm", ["x", "w", "c"], ["y"], alpha=0.25, beta=2.0)], {"x": noise(4, 32)}, constants)


def _batch_norm_training() -> ProbeGraph:
    constants = {"s": noise(8, seed=1), "b": noise(8, seed=2), "m": noise(8, seed=3), "v": numpy.abs(noise(8, seed=4))}
    nodes = [node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "rm", "rv"], training_mode=1)]
    return graph(nodes, {"x": noise(2, 8, 6, 6, scale=3)}, constants)


def _attention_bool() -> ProbeGraph:
    feeds = {name: noise(1, 2, 8, 4, seed=seed) for seed, name in enumerate("qkv")}
    mask = {"m": numpy.tril(numpy.ones((1, 1, 8, 8), bool))}
    return graph([node("Attention", ["q", "k", "v", "m"], ["y"])], feeds, mask, opset=23)


def _group_norm() -> ProbeGraph:
    middle = [node("GroupNormalization", ["a", "g", "b"], ["m"], num_groups=4)]
    return between_convs(middle, {"g": noise(8, seed=3), "b": noise(8, seed=4)})


def _numbers(*values: float) -> Array:
    return numpy.array([values], numpy.float32)


_BYTES = numpy.arange(0, 256, 5, dtype=numpy.uint8).reshape(1, -1)
_DW = {"group": 16, "strides": [2], "pads": [1, 1], "output_padding": [1]}

# Quantized probes are in probes_quantized.py.
FLOAT_PROBES: Mapping[str, Callable[[], ProbeGraph]] = {
    "resize-half-pixel-floor": lambda: _resize(
        (1, 3, 10, 10), sizes=(1, 3, 20, 20), mode="nearest", nearest_mode="floor"
    ),
    "resize-asymmetric-ceil": lambda: _resize(
        (1, 3, 10), sizes=(1, 3, 23), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="ceil"
    ),
    "resize-linear-scale": lambda: _resize((1, 3, 10, 10), scales=(1, 1, 1.75, 2.35), mode="linear"),
    "resize-cubic-scale": lambda: _resize((1, 1, 4, 4), scales=(1, 1, 0.8, 0.8), mode="cubic"),
    "resize-linear-3d": lambda: _resize((1, 2, 4, 6, 6), sizes=(1, 2, 8, 12, 9), mode="linear"),
    "pad-edge": lambda: _pad((1, 2, 6, 8), (0, 0, 1, 1, 0, 0, 1, 1), "edge"),
    "pad-edge-1d": lambda: _pad((16,), (3, 2), "edge"),
    "pad-wrap": lambda: _pad((1, 2, 6, 8), (0, 0, 1, 1, 0, 0, 1, 1), "wrap", opset=19),
    "pad-reflect-5d": lambda: _pad((1, 2, 4, 5, 6), (0, 0, 1, 1, 1, 0, 0, 1, 1, 1), "reflect"),
    "conv-transpose-depthwise": lambda: _conv_transpose((1, 16, 20), (16, 1, 3), **_DW),
    "conv-transpose-dilated": lambda: _conv_transpose((1, 12, 33), (12, 5, 3), strides=[2], dilations=[2]),
    "conv-large-pads": lambda: graph(
        [node("Conv", ["x", "w"], ["y"], pads=[3] * 4)], {"x": noise(1, 4, 16, 16)}, {"w": noise(8, 4, 3, 3, seed=1)}
    ),
    "large-factor": lambda: graph(
        [node("Mul", ["x", "k"], ["y"])], {"x": noise(4, 32, scale=1e-3)}, {"k": numpy.float32(1e5)}
    ),
    "conv-wide-relu": lambda: _wide_conv([node("Relu", ["c"], ["y"])]),
    "conv-wide-relu-behind-scale": lambda: _wide_conv([node("Mul", ["c", "s"], ["t"]), node("Relu", ["t"], ["y"])]),
    "average-pool-ceil": lambda: one(
        "AveragePool", numpy.abs(noise(1, 8, 31)) + 1, kernel_shape=[2], strides=[2], ceil_mode=1
    ),
    "average-pool-end-pads": lambda: one(
        "AveragePool", numpy.abs(noise(1, 4, 11, 11)) + 1, kernel_shape=[3, 3], pads=[0, 0, 1, 1]
    ),
    "max-pool-3d": lambda: one("MaxPool", noise(1, 3, 8, 8, 8), kernel_shape=[2] * 3, strides=[2] * 3),
    "max-pool-even": lambda: one(
        "MaxPool", -numpy.abs(noise(1, 4, 12, 12)) - 1, kernel_shape=[2, 2], strides=[2, 2], pads=[1] * 4
    ),
    "softplus-behind-conv": lambda: between_convs([node("Softplus", ["a"], ["m"])]),
    "mish-between-convs": lambda: between_convs([node("Mish", ["a"], ["m"])]),
    "group-norm-between-convs": _group_norm,
    "erf-alone": lambda: one("Erf", numpy.linspace(-3, 3, 96, dtype=numpy.float32).reshape(1, 96)),
    "exp-negative": lambda: one("Exp", numpy.linspace(-110, 0, 64, dtype=numpy.float32).reshape(1, 64)),
    "exp-large": lambda: one("Exp", numpy.linspace(0, 15, 64, dtype=numpy.float32).reshape(1, 64)),
    "softplus-written-out": lambda: _written("softplus"),
    "softmax-written-out": lambda: _written("softmax"),
    "log-sum-exp": lambda: _written("log-sum-exp"),
    "fed-mask": _fed_mask,
    "masked-rows": _masked_rows,
    "fed-compare": _fed_compare,
    "reduce-l2": _reduce_l2,
    "top-k-ties": _top_k,
    "uint8-to-float": lambda: _cast(_BYTES, TensorProto.FLOAT),
    "int32-to-bool": lambda: _cast(
        numpy.array([[0, 1, -1, 2047, 2049, -2049, 65503, -70001]], numpy.int32), TensorProto.BOOL
    ),
    "float-to-int": _float_to_int,
    "float-to-bool": lambda: _cast(_numbers(0, 1e-9, 1, -1, 0, 1e-9, 2, 0), TensorProto.BOOL),
    "integer-mod": lambda: _integers("Mod", (0, 5, 2049, 4097, 70000, -70000, -5, 16777217), 3),
    "integer-fmod": lambda: _integers("Mod", (0, 5, 2049, 4097, 70000, -70000, -5, 16777217), 7, fmod=1),
    "integer-division": lambda: _integers("Div", (0, 5, -5, 7, -7, -2049, -4097, 70000), 2),
    "integer-arg-max": _compare,
    "layer-norm-two-axes": _layer_norm,
    "norm-written-out": _norm_written,
    "variance-of-squares": _variance,
    "log-softmax-masked": _log_softmax,
    "log-softmax-spread": lambda: one("LogSoftmax", noise(2, 8, 96, scale=200), axis=1),
    "log-sigmoid": _log_sigmoid,
    "tanh-written-out": _tanh_written,
    "softsign": lambda: one("Softsign", noise(2, 48, scale=3)),
    "asinh": lambda: one("Asinh", numpy.linspace(-1000, 1000, 96, dtype=numpy.float32).reshape(2, 48)),
    "pow-by-integer": lambda: graph([node("Pow", ["x", "two"], ["y"])], {"x": noise(2, 48)}, {"two": numpy.array(2)}),
    "reduce-l1": lambda: one("ReduceL1", noise(2, 6, 32), axes=[-1]),
    "gemm-alpha": _gemm_alpha,
    "batch-norm-training": _batch_norm_training,
    "attention-bool-mask": _attention_bool,
    "rms-norm-short-rows": lambda: graph(
        [node("RMSNormalization", ["x", "g"], ["y"], axis=-1)],
        {"x": noise(2, 16, 32)},
        {"g": noise(32, seed=1)},
        opset=23,
    ),
    "matmul-5d": _matmul_5d,
    "einsum": _einsum,
    "trilu": lambda: one("Trilu", noise(6, 6), upper=0),
    "reduce-prod": lambda: one("ReduceProd", noise(3, 2, 5), axes=[2]),
    "rank-6": _rank_6,
    "lstm-lengths": _lstm,
    "grid-sample-bicubic": _grid_sample,
    "det": lambda: one("Det", noise(4, 4)),
    "long-sum": _long_sum,
    "log-floor": _log_floor,
    "arg-max-near": lambda: one("ArgMax", _numbers(1, 65504, 65519, 3), dtype=TensorProto.INT64, axis=1),
    "wide-angle": lambda: one("Sin", numpy.linspace(0, 2000, 64, dtype=numpy.float32).reshape(1, 64) + 0.37),
    "wide-integers": lambda: graph(
        [node("Expand", ["x", "s"], ["y"])],
        {"x": numpy.array([[[5], [2**31 + 5], [-7]]], numpy.int64)},
        {"s": numpy.array([2, 1, 4])},
        {"y": TensorProto.INT64},
    ),
}
