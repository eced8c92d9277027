"""A tiny graph for each known fault of padding, pooling, normalization and recurrent layers, in float."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy

from qnn.faults.probes import ProbeGraph, between_convs, graph, node, noise, one

_PADS = numpy.array([0, 0, 1, 1, 0, 0, 1, 1])


def _pad_axes() -> ProbeGraph:
    constants = {"p": numpy.array([1, 2, 3, 4]), "v": numpy.float32(0), "a": numpy.array([2, 3])}
    return graph([node("Pad", ["x", "p", "v", "a"], ["y"])], {"x": noise(1, 3, 8, 8)}, constants, opset=18)


def _pad_value() -> ProbeGraph:
    middle = [node("Pad", ["a", "p", "v"], ["q"]), node("Conv", ["q", "k"], ["m"], pads=[1] * 4)]
    constants = {"p": _PADS, "v": numpy.float32(1), "k": noise(8, 8, 3, 3, seed=5, scale=0.2)}
    return between_convs(middle, constants, opset=17)


def _pad_max_pool() -> ProbeGraph:
    nodes = [node("Pad", ["x", "p"], ["q"]), node("MaxPool", ["q"], ["y"], kernel_shape=[3, 3], strides=[2, 2])]
    constants = {"p": numpy.array([0, 0, 0, 0, 0, 0, 1, 1])}
    return graph(nodes, {"x": noise(1, 4, 12, 12) - 3}, constants)


def _pad_even_max_pool() -> ProbeGraph:
    nodes = [node("Pad", ["x", "p", "v"], ["q"]), node("MaxPool", ["q"], ["y"], kernel_shape=[2, 2], strides=[2, 2])]
    constants = {"p": numpy.array([0, 0, 0, 0, 0, 0, 1, 1]), "v": numpy.float32(-numpy.inf)}
    return graph(nodes, {"x": noise(1, 4, 9, 9) - 3}, constants)


def _dft() -> ProbeGraph:
    nodes = [node("Unsqueeze", ["x", "last"], ["u"]), node("DFT", ["u"], ["y"], onesided=1)]
    return graph(nodes, {"x": noise(1, 64)}, {"last": numpy.array([-1])}, opset=17)


def _col2im() -> ProbeGraph:
    constants = {"image": numpy.array([12, 12]), "block": numpy.array([4, 4])}
    nodes = [node("Col2Im", ["x", "image", "block"], ["y"], strides=[2, 2])]
    return graph(nodes, {"x": noise(1, 32, 25)}, constants, opset=18)


def _pixel_unshuffle() -> ProbeGraph:
    nodes = [
        node("Reshape", ["x", "inner"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[0, 1, 3, 5, 2, 4]),
        node("Reshape", ["t", "outer"], ["y"]),
    ]
    constants = {"inner": numpy.array([1, 2, 4, 3, 4, 3]), "outer": numpy.array([1, 18, 4, 4])}
    return graph(nodes, {"x": noise(1, 2, 12, 12)}, constants)


def _pool(op_type: str, *shape: int, opset: int = 19, **attributes: Any) -> ProbeGraph:
    return one(op_type, numpy.abs(noise(*shape)) + 1, opset=opset, **attributes)


def _group_norm(*shape: int) -> ProbeGraph:
    constants = {"g": noise(8, seed=1), "b": noise(8, seed=2)}
    nodes = [node("GroupNormalization", ["x", "g", "b"], ["y"], num_groups=2)]
    return graph(nodes, {"x": noise(*shape)}, constants, opset=21)


def _batch_norm() -> ProbeGraph:
    parameters = {"s": noise(7, seed=1), "b": noise(7, seed=2), "u": noise(7, seed=3), "v": numpy.abs(noise(7)) + 1}
    nodes = [node("BatchNormalization", ["x", *parameters], ["y"])]
    return graph(nodes, {"x": noise(1, 7, 3, 4, 5)}, parameters)


def _long_lstm() -> ProbeGraph:
    """A cell that keeps what it holds: a forget gate of nearly 1, of which HTP makes another number."""
    bias = numpy.zeros((1, 64), numpy.float32)
    bias[:, 16:24] = 8
    constants = {"w": noise(1, 32, 4, seed=1, scale=0.3), "r": noise(1, 32, 8, seed=2, scale=0.2), "b": bias}
    nodes = [node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=8)]
    return graph(nodes, {"x": noise(250, 1, 4, scale=0.1)}, constants)


def _lstm(lengths: tuple[int, ...] = (), **attributes: int) -> ProbeGraph:
    constants = {"w": noise(1, 40, 8, scale=0.4), "r": noise(1, 40, 10, seed=1, scale=0.4)}
    inputs = ["x", "w", "r", "", "n"] if lengths else ["x", "w", "r"]
    if lengths:
        constants["n"] = numpy.array(lengths, numpy.int32)
    nodes = [node("LSTM", inputs, ["y"], hidden_size=10, **attributes)]
    return graph(nodes, {"x": noise(12, 2, 8)}, constants)


def _rnn() -> ProbeGraph:
    constants = {"w": noise(1, 10, 8, scale=0.4), "r": noise(1, 10, 10, seed=1, scale=0.4)}
    return graph([node("RNN", ["x", "w", "r"], ["y"], hidden_size=10)], {"x": noise(12, 2, 8)}, constants)


def _conv_transpose_3d() -> ProbeGraph:
    nodes = [node("ConvTranspose", ["x", "w"], ["y"], strides=[2] * 3, pads=[1] * 6, group=4)]
    return graph(nodes, {"x": noise(1, 4, 4, 5, 6)}, {"w": noise(4, 1, 3, 3, 3, seed=1)})


def _conv_3d() -> ProbeGraph:
    nodes = [node("Conv", ["x", "w"], ["y"], dilations=[2] * 3, pads=[2] * 6)]
    return graph(nodes, {"x": noise(1, 4, 9, 9, 9)}, {"w": noise(4, 4, 3, 3, 3, seed=1)})


def _resize(*shape: int, **attributes: Any) -> ProbeGraph:
    constants = {"sizes": numpy.array(shape)}
    return graph([node("Resize", ["x", "", "", "sizes"], ["y"], **attributes)], {"x": noise(1, 3, 8, 10)}, constants)


SPATIAL_PROBES: Mapping[str, Callable[[], ProbeGraph]] = {
    "pad-axes": _pad_axes,
    "pad-value-between-convs": _pad_value,
    "pad-before-max-pool": _pad_max_pool,
    "pad-before-even-max-pool": _pad_even_max_pool,
    "dft": _dft,
    "col2im": _col2im,
    "pixel-unshuffle": _pixel_unshuffle,
    "tanh-5d": lambda: one("Tanh", noise(1, 4, 3, 6, 5)),
    "average-pool-odd": lambda: _pool("AveragePool", 1, 4, 15, 15, kernel_shape=[3, 3], pads=[1] * 4),
    "average-pool-dilated": lambda: _pool("AveragePool", 1, 4, 16, 16, kernel_shape=[3, 3], dilations=[2, 2]),
    "max-pool-dilated": lambda: _pool("MaxPool", 1, 4, 15, 15, opset=17, kernel_shape=[3, 3], dilations=[2, 2]),
    "lp-pool-uneven": lambda: one("LpPool", noise(1, 4, 13, 13), kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
    "lp-pool-cubes": lambda: one("LpPool", noise(1, 4, 12, 12), kernel_shape=[3, 3], strides=[2, 2], p=3),
    "global-lp-pool": lambda: one("GlobalLpPool", noise(1, 4, 9, 9), p=1),
    "group-norm-rank-3": lambda: _group_norm(2, 8, 30),
    "group-norm-rank-5": lambda: _group_norm(1, 8, 4, 5, 6),
    "batch-norm-rank-5": _batch_norm,
    "long-lstm": _long_lstm,
    "lstm-shorter": lambda: _lstm((7, 7)),
    "rnn": _rnn,
    "lstm-coupled": lambda: _lstm(input_forget=1),
    "conv-transpose-3d-groups": _conv_transpose_3d,
    "conv-3d-dilated": _conv_3d,
    "resize-exclude-outside": lambda: _resize(1, 3, 17, 19, mode="cubic", exclude_outside=1),
    "resize-to-one": lambda: _resize(1, 3, 1, 5, mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
}
