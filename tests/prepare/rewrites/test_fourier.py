"""Fourier transforms and sums of overlapping pieces become products by constants, and the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_rewritten

# ONNX Runtime's own transforms of lengths that are no power of two are off by so much.
FAST = 1e-5


def dft(shape: tuple[int, ...], *, length: int | None = None, axis: int = -2, opset: int = 20, **written: Any) -> Any:
    """(model, feeds) of one DFT; `axis` is an attribute below opset 20."""
    constants = {"n": np.array(length)} if length is not None else {}
    inputs = ["x", "n" if constants else ""]
    if opset >= 20:
        constants["axis"] = np.array(axis)
        inputs.append("axis")
    else:
        written["axis"] = axis
    made = node("DFT", inputs, ["y"], **written)
    return model([made], [value("x", shape)], [value("y", None)], constants, opset=opset), {"x": noise(*shape)}


@pytest.mark.parametrize(
    ("shape", "written"),
    [
        ((1, 64, 1), {"onesided": 1}),
        ((2, 30, 1), {}),
        ((2, 16, 2), {}),
        ((2, 16, 2), {"inverse": 1}),
        ((1, 16, 6, 2), {"axis": 1}),
        ((1, 16, 6, 1), {"axis": 1, "onesided": 1}),
        ((3, 16, 1), {"length": 12, "onesided": 1}),
        ((3, 16, 1), {"length": 25}),
        ((1, 9, 2), {"length": 16, "inverse": 1, "onesided": 1}),
        ((1, 9, 2), {"length": 17, "inverse": 1, "onesided": 1}),
        ((2, 3, 9, 2), {"length": 16, "axis": 2, "inverse": 1, "onesided": 1}),
        ((2, 32, 1), {"opset": 17, "axis": 1}),
        ((2, 32, 2), {"opset": 17, "axis": 1, "inverse": 1}),
    ],
)
def test_dft(shape: tuple[int, ...], written: dict[str, Any]) -> None:
    made, feeds = dft(shape, **written)
    assert "MatMul" in operators(assert_rewritten(made, feeds, "fourier-plain", within=FAST))


@pytest.mark.parametrize(
    ("columns", "image", "block", "written"),
    [
        ((1, 32, 25), (12, 12), (4, 4), {"strides": [2, 2]}),
        ((2, 18, 20), (4, 5), (3, 3), {"pads": [1, 1, 1, 1]}),
        ((1, 8, 12), (7, 9), (2, 2), {"strides": [2, 2]}),
        ((1, 6, 9), (7, 3), (3, 1), {"dilations": [2, 1]}),
        ((1, 4, 15), (1, 60), (1, 4), {"strides": [1, 4]}),
    ],
)
def test_col2im(
    columns: tuple[int, ...], image: tuple[int, ...], block: tuple[int, ...], written: dict[str, Any]
) -> None:
    made = node("Col2Im", ["x", "image", "block"], ["y"], **written)
    constants = {"image": np.array(image), "block": np.array(block)}
    graph = model([made], [value("x", columns)], [value("y", None)], constants, opset=18)
    assert "ConvTranspose" in operators(assert_rewritten(graph, {"x": noise(*columns)}, "col2im-plain"))
