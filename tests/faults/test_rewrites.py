"""Every rewritten entry of the table: its rewrite meets its probes, and what comes out is the same function.

Compared on ONNX Runtime's CPU provider; `qnn-forge faults check` does it on the emulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qnn.faults.probe import PROBES
from qnn.faults.table import load_faults
from tests.prepare.graphs import INT32, INT64, Array, model, node, run, value
from tests.prepare.rewrites.checks import prepared_with

REWRITTEN = [
    (fault.rewrite, probe.graph) for fault in load_faults() if fault.rewrite is not None for probe in fault.probes
]
# Right on HTP only, which takes the last of equal values first.
_TIES = "top-k-ties"
# A sum in 16 bits may round to the neighbouring 8-bit step; ONNX Runtime's Sigmoid of -10 is off by 0.05 %, and a
# difference of squares in float32 by 0.01 %.
_LOOSE = {"cum-sum-8-bits": 1 / 254, "log-sigmoid": 1e-3, "variance-of-squares": 2e-4}


@pytest.mark.parametrize(("rewrite", "probe"), sorted(set(REWRITTEN)))
def test_probe_is_rewritten_into_the_same_function(rewrite: str, probe: str) -> None:
    made = PROBES[probe]()
    changes, after = prepared_with(made.model, made.feeds)
    assert any(change.startswith("rewritten") and f": {rewrite}: " in change for change in changes), changes
    if probe == _TIES:
        return
    for expected, got in zip(run(made.model, made.feeds), run(after, made.feeds), strict=True):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        scale = float(np.abs(expected.astype(np.float64)).max()) or 1.0
        error = float(np.abs(got.astype(np.float64) - expected.astype(np.float64)).max()) / scale
        assert error <= _LOOSE.get(probe, 2e-6)


def test_top_k_positions_are_counted_from_the_other_end() -> None:
    """On the CPU, where the first of equals comes first, the rewritten graph takes the last; else nothing changes."""
    made = PROBES[_TIES]()
    _, after = prepared_with(made.model, made.feeds)
    assert run(after, made.feeds)[1].tolist() == [[19, 18, 17, 16, 15, 14]]
    feeds = {"x": np.random.default_rng(0).permutation(64).astype(np.float32).reshape(1, 64)}
    for expected, got in zip(run(made.model, feeds), run(after, feeds), strict=True):
        assert np.array_equal(expected, got)


@pytest.mark.parametrize(("kernel", "size"), [(2, 11), (3, 12)])
def test_quantized_average_pool_gets_end_pads(kernel: int, size: int) -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["x_q"]),
        node("DequantizeLinear", ["x_q", "s", "z"], ["x_dq"]),
        node("AveragePool", ["x_dq"], ["p"], kernel_shape=[kernel] * 2, strides=[2, 2], ceil_mode=1),
        node("QuantizeLinear", ["p", "s", "z"], ["p_q"]),
        node("DequantizeLinear", ["p_q", "s", "z"], ["y"]),
    ]
    out = -(-(size - kernel) // 2) + 1
    constants = {"s": np.float32(0.03), "z": np.uint8(120)}
    made = model(nodes, [value("x", [1, 4, size, size])], [value("y", [1, 4, out, out])], constants)
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 4, size, size)).astype(np.float32)}
    changes, after = prepared_with(made, feeds)
    assert any("pads [0, 0, 1, 1] in place of ceil_mode" in change for change in changes)
    assert np.array_equal(run(made, feeds)[0], run(after, feeds)[0])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("divisor", [2, -8, 3, -3, [4, -4, 7, -7, 2, -2, 1, 5]])
@pytest.mark.parametrize(("operator", "attributes"), [("Div", {}), ("Mod", {}), ("Mod", {"fmod": 1})])
def test_integers_of_either_sign(
    operator: str, attributes: dict[str, Any], divisor: int | list[int], dtype: type
) -> None:
    kind = INT32 if dtype is np.int32 else INT64
    x: Array = np.array([[0, 5, -5, 7, -7, 2049, -2049, 70000], [1, -1, 8, -8, 9, -9, -70000, 16777217]], dtype)
    by: Array = np.array(divisor, dtype)
    made = model([node(operator, ["x", "k"], ["y"], **attributes)], [value("x", x.shape, kind)],
                 [value("y", x.shape, kind)], {"k": by})  # fmt: skip
    _, after = prepared_with(made, {"x": x})
    assert np.array_equal(run(made, {"x": x})[0], run(after, {"x": x})[0])
    both = model([node(operator, ["x", "k"], ["y"], **attributes)], [value("x", x.shape, kind), value("k", [8], kind)],
                 [value("y", x.shape, kind)])  # fmt: skip
    feeds = {"x": x, "k": np.broadcast_to(by, [8]).copy()}
    _, after = prepared_with(both, feeds)
    assert np.array_equal(run(both, feeds)[0], run(after, feeds)[0])
