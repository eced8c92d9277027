"""Refused nodes: named, with a reason and a suggestion, from what the real compiler leaves behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from qnn.child import Host, Limits
from qnn.toolchains.pip.op_advice import advice
from qnn.toolchains.pip.op_trace import RefusedNode, diagnose
from tests.prepare.graphs import INT64, model, node, noise, saved, value
from tests.toolchains.trace_job import Attempt, Left


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with closing(Host()) as running:
        yield running


def compile_it(host: Host, made: ModelProto, folder: Path, severity: int = 2) -> tuple[Left, str]:
    """What the compiler left, and its log."""
    saved(made, folder, "model.onnx")
    log = folder / "log"
    left: Left = host.call(
        "tests.toolchains.trace_job:attempt",
        Attempt(severity),
        log=log,
        limits=Limits(seconds=120, memory_bytes=4 << 30),
        cwd=folder,
    )
    return left, log.read_text(encoding="utf-8", errors="replace") + left.error


def one_op(op_type: str, shape: list[int], constants: dict[str, Any] | None = None, **attributes: Any) -> ModelProto:
    """x → the operator → y, with a Relu beside it that HTP takes."""
    made = model(
        [node("Relu", ["x"], ["r"]), node(op_type, ["x", *(constants or {})], ["y"], name="culprit", **attributes)],
        [value("x", shape)],
        [value("r", shape), value("y", None)],
        constants,
        opset=20,
        ir=9,
    )
    return onnx.shape_inference.infer_shapes(made)


def lstm() -> ModelProto:
    constants = {
        "w": noise(1, 16, 3),
        "r": noise(1, 16, 4),
        "b": noise(1, 32),
        "lengths": np.array([2, 5], np.int32),
    }
    return model(
        [node("LSTM", ["x", "w", "r", "b", "lengths"], ["y"], name="culprit", hidden_size=4)],
        [value("x", [5, 2, 3])],
        [value("y", [5, 1, 2, 4])],
        constants,
    )


def grid_sample() -> ModelProto:
    return model(
        [node("GridSample", ["x", "grid"], ["y"], name="culprit", mode="bicubic")],
        [value("x", [1, 2, 6, 6]), value("grid", [1, 4, 4, 2])],
        [value("y", [1, 2, 4, 4])],
    )


REFUSALS = {
    "lone erf": (one_op("Erf", [1, 4]), "no HTP form of Erf", "exact GELU"),
    "trilu": (one_op("Trilu", [6, 6]), "no HTP form of Trilu", "constant mask"),
    "einsum": (
        one_op("Einsum", [2, 3], {"w": noise(4)}, equation="ij,k->ijk"),
        "unsupported equation: ij,k->ijk",
        "Transpose, Reshape and MatMul",
    ),
    "layer norm over two axes": (
        one_op("LayerNormalization", [2, 3, 4], {"s": noise(3, 4)}, axis=1),
        "last axis",
        "into one last axis",
    ),
    "nearest resize": (
        one_op(
            "Resize",
            [1, 2, 4, 4],
            {"roi": np.empty(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)},
            mode="nearest",
            nearest_mode="ceil",
            coordinate_transformation_mode="asymmetric",
        ),
        "nearest_mode == 'ceil'",
        "two Gathers",
    ),
    "six dimensions": (one_op("Neg", [2, 1, 2, 1, 2, 2]), "6 dimensions", "Reshape"),
    "sequence lengths": (lstm(), "same sequence length", "sequence_lens"),
    "bicubic grid": (grid_sample(), "bicubic", "linear"),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_the_compilers_refusals_are_named(host: Host, tmp_path: Path, kind: str) -> None:
    made, reason, suggestion = REFUSALS[kind]
    left, log = compile_it(host, made, tmp_path)
    refused = {entry.node: entry for entry in diagnose(left.trace, log, made)}
    assert "culprit" in refused
    if kind != "six dimensions":  # there the Relu is refused too
        assert set(refused) == {"culprit"}
    found = refused["culprit"]
    assert found.op_type == next(entry.op_type for entry in made.graph.node if entry.name == "culprit")
    assert reason in found.reason
    assert suggestion in found.suggestion


def test_only_the_refused_node_of_many_is_named_in_order(host: Host, tmp_path: Path) -> None:
    made = model(
        [
            node("Det", ["x"], ["d"], name="first"),
            node("Unsqueeze", ["d", "axis"], ["u"]),
            node("Mul", ["x", "u"], ["m"]),
            node("Det", ["m"], ["y"], name="second"),
        ],
        [value("x", [4, 4])],
        [value("y", [])],
        {"axis": np.array([0, 1])},
    )
    left, log = compile_it(host, made, tmp_path)
    assert [(entry.node, entry.op_type) for entry in diagnose(left.trace, log, made)] == [
        ("first", "Det"),
        ("second", "Det"),
    ]


def test_a_fused_gelu_is_not_refused(host: Host, tmp_path: Path) -> None:
    made = model(
        [
            node("Div", ["x", "root"], ["d"]),
            node("Erf", ["d"], ["e"]),
            node("Add", ["e", "one"], ["e1"]),
            node("Mul", ["x", "e1"], ["xe"]),
            node("Mul", ["xe", "half"], ["y"]),
        ],
        [value("x", [1, 8])],
        [value("y", [1, 8])],
        {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)},
    )
    left, log = compile_it(host, made, tmp_path)
    assert left.error == ""
    assert diagnose(left.trace, log, made) == ()


def test_a_session_that_dies_is_explained_by_its_verbose_log(host: Host, tmp_path: Path) -> None:
    """Without value info the operator between two Convs breaks the session before there is a trace."""
    made = model(
        [
            node("Conv", ["x", "w"], ["a"]),
            node("GroupNormalization", ["a", "s", "s"], ["n"], name="culprit", num_groups=2),
            node("Conv", ["n", "w2"], ["y"]),
        ],
        [value("x", [1, 3, 8, 8])],
        [value("y", [1, 2, 8, 8])],
        {"w": noise(4, 3, 1, 1), "s": noise(4), "w2": noise(2, 4, 1, 1)},
        opset=21,
        ir=10,
    )
    left, log = compile_it(host, made, tmp_path, severity=0)
    assert left.trace == ""
    refused = {entry.node: entry for entry in diagnose(left.trace, log, made)}
    assert refused["culprit"].reason == "Cannot get shape"
    assert "fix all dimensions" in refused["culprit"].suggestion


TRACE = json.dumps(
    {
        "unsupported_nodes": [
            {
                "node_index": 9,
                "node_name": "QNNExecutionProvider_1_0",
                "op_type": "QNNExecutionProvider_1",
                "reason": "?",
            },
            {"node_index": 2, "node_name": "late_token_7", "op_type": "Relu", "reason": "Failed to add node."},
            {"node_index": 1, "node_name": "early", "op_type": "Neg", "reason": "QNN EP: no."},
            {"node_index": 0, "node_name": "Transpose_token_3", "op_type": "Transpose", "reason": "Cannot get shape"},
        ]
    }
)
TWO = model(
    [node("Neg", ["x"], ["n"], name="early"), node("Relu", ["n"], ["y"], name="late")],
    [value("x", [2], INT64)],
    [value("y", [2], INT64)],
)


def test_names_the_compiler_changed_are_those_of_the_model() -> None:
    assert [(entry.node, entry.reason) for entry in diagnose(TRACE, "", TWO)] == [
        ("early", "no."),
        ("late", "QNN's validation refuses this form; operands: y int64[2]"),
    ]


def test_the_log_gives_the_reason_the_trace_lacks() -> None:
    log = (
        "\x1b[0;93m[W:onnxruntime:] QNN.backendValidateOpConfig() failed for node `late_2` of type `Relu` with error "
        "code 3110\x1b[m\n[V:onnxruntime:] Validation FAILED for 1 nodes in OrtNodeUnit (Neg) :\n"
        "\tOperator type: Neg Node name: early Node index: 0\n\tREASON : QNN EP: too negative\n"
        "[E:onnxruntime:] Unsupported nodes in QNN EP: { name: late, type: Relu }{ name: early, type: Neg }, \n"
    )
    assert [(entry.node, entry.reason) for entry in diagnose("{}", log, TWO)] == [
        ("early", "too negative"),
        ("late", "QNN's validation refuses this form (error 3110); operands: y int64[2]"),
    ]


def test_a_missing_shape_behind_another_refusal_is_no_cause() -> None:
    entries = [
        {"node_name": "early", "op_type": "Neg", "reason": "Operators of type `Neg` are not supported by QNN EP.Neg"},
        {"node_name": "late", "op_type": "Relu", "reason": "Cannot get shape"},
    ]
    assert [entry.node for entry in diagnose(json.dumps({"unsupported_nodes": entries}), "", TWO)] == ["early"]
    assert [entry.node for entry in diagnose(json.dumps({"unsupported_nodes": entries[1:]}), "", TWO)] == ["late"]


def test_types_htp_lacks_explain_a_refusal() -> None:
    made = model(
        [node("Relu", ["x"], ["y"], name="culprit")],
        [value("x", [2], onnx.TensorProto.DOUBLE)],
        [value("y", [2], onnx.TensorProto.DOUBLE)],
    )
    trace = '{"unsupported_nodes": [{"node_name": "culprit", "op_type": "Relu", "reason": "Failed to add node."}]}'
    assert diagnose(trace, "", made) == (
        RefusedNode("culprit", "Relu", "tensor 'x' is double, which HTP does not have", "export the model in float32"),
    )


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_arbitrary_text_names_no_node(trace: str, log: str) -> None:
    assert diagnose(trace, log, TWO) == ()


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["unsupported_nodes", "a"]), inner),
    )
)
def test_arbitrary_json_names_no_node(document: object) -> None:
    assert diagnose(json.dumps(document), "", TWO) == ()


@settings(deadline=None)
@given(st.sampled_from(["Erf", "Resize", "LSTM", "Foo", ""]), st.text(max_size=30))
def test_there_is_always_advice(op_type: str, reason: str) -> None:
    assert advice(op_type, reason)


def test_a_reason_reads_as_one_line() -> None:
    assert str(RefusedNode("a", "Erf", "none", "use Gelu")) == "node 'a' (Erf): none → use Gelu"
