"""Matchers find their pattern and nothing else; refusals and hints name node, operator and remedy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from qnn.faults.found import FoundFault
from qnn.faults.judge import hints, refusal, unmended
from qnn.faults.match import find_faults
from qnn.faults.probe import PROBES
from qnn.faults.table import Outcome, load_faults
from qnn.prepare import shapes
from qnn.prepare.prepared import Change
from tests.prepare.graphs import INT32, model, node, value

WATCHED_OR_REFUSED = [
    (fault.matcher, probe.graph)
    for fault in load_faults()
    if fault.outcome in (Outcome.REFUSED, Outcome.WATCHED)
    for probe in fault.probes
]


def found_in(made: onnx.ModelProto) -> list[FoundFault]:
    return list(find_faults(shapes.infer(made)))


@pytest.mark.parametrize(("pattern", "probe"), WATCHED_OR_REFUSED)
def test_every_probe_meets_its_own_pattern(pattern: str, probe: str) -> None:
    assert pattern in {found.pattern for found in found_in(PROBES[probe]().model)}


def test_a_plain_network_meets_nothing() -> None:
    made = model(
        [node("Conv", ["x", "w"], ["c"]), node("Relu", ["c"], ["y"])],
        [value("x", [1, 3, 8, 8])],
        [value("y", [1, 4, 6, 6])],
        {"w": np.ones((4, 3, 3, 3), np.float32)},
    )
    assert found_in(made) == []


@pytest.mark.parametrize(
    ("operator", "inputs", "constants"),
    [
        ("Log", "floored", {"least": np.float32(1e-3)}),
        ("CumSum", "x", {"axis": np.array(1)}),
        ("Sin", "bounded", {"low": np.float32(-3), "high": np.float32(3)}),
    ],
)
def test_what_fp16_can_hold_is_not_met(operator: str, inputs: str, constants: dict[str, np.ndarray]) -> None:
    before = {
        "floored": node("Max", ["x", "least"], ["floored"]),
        "bounded": node("Clip", ["x", "low", "high"], ["bounded"]),
    }
    nodes = [before[inputs]] if inputs in before else []
    nodes.append(node(operator, [inputs, *(["axis"] if operator == "CumSum" else [])], ["y"]))
    assert found_in(model(nodes, [value("x", [1, 99])], [value("y", [1, 99])], constants)) == []


def test_outputs_that_depend_on_a_node() -> None:
    made = model(
        [node("Cast", ["x"], ["b"], to=9), node("Cast", ["b"], ["y"], to=INT32), node("Relu", ["x"], ["z"])],
        [value("x", [1, 4])],
        [value("y", [1, 4], INT32), value("z", [1, 4])],
    )
    (found,) = found_in(made)
    assert (found.node, found.op_type, found.outputs) == ("Cast_b", "Cast", ("y",))
    assert hints(["z"], "fp16", "v75", [found]) == []
    (line,) = hints(["y", "z"], "fp16", "v75", [found])
    assert line.startswith("suspect node 'Cast_b' (Cast): numbers of less than 3e-8")
    assert "compare with a bound that fp16 has" in line
    assert hints(["y"], "w8a8", "v75", [found]) == []


def test_refusals_depend_on_chip_and_precision() -> None:
    (found,) = (found for found in found_in(PROBES["blockwise-weights"]().model))
    assert refusal("net", "SM8650", "v75", "w8a16", [found]) is None
    error = refusal("net", "SM8350", "v68", "w8a16", [found])
    assert error is not None
    assert error.id == "QF450"
    assert error.message == "net on SM8350: Weights quantized in blocks have no form on v68 (blockwise-v68)"
    assert "node 'MatMul_m' (MatMul): its weights 'w_q' are quantized in blocks of 32" in error.details[0]
    assert "quantize these weights per channel" in error.remedy


def test_many_hints_are_counted() -> None:
    found = [FoundFault("power", f"Exp_{index}", "Exp", "large", ("y",)) for index in range(9)]
    lines = hints(["y"], "fp16", "v75", found)
    assert len(lines) == 7
    assert lines[-1].startswith("and 3 more nodes")


def test_nodes_that_a_rewrite_left_are_named() -> None:
    changes = [
        Change("rewritten", "Pad_p (Pad)", "pad-by-gather: …"),
        Change("not-rewritten", "AveragePool_a (AveragePool)", "average-pool-padded: it is quantized"),
    ]
    assert unmended(changes) == ["suspect node AveragePool_a (AveragePool): average-pool-padded: it is quantized"]
