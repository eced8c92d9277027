"""The read-back gate: right binaries pass, and each way a binary can be wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.binary import ContextBinary, inspect_file
from qnn.binary.gate import ExpectedBinary, ExpectedGraph, check_readback, require_readback
from qnn.binary.info import GraphInfo, QnnDType, QuantizationInfo, TensorInfo, Version
from qnn.binary.mapping import possible_dtypes, qnn_shape
from qnn.child import Host, Limits
from qnn.errors.base import ExitCode
from qnn.errors.readback import ReadBackMismatch
from qnn.tensors import TensorSpec

Inspect = Callable[[Path | str], ContextBinary]

FLOAT_GRAPH = ExpectedGraph(
    inputs=(
        TensorSpec("x/in:0", "float32", (2, 4)),
        TensorSpec("mask", "bool", (2, 4)),
        TensorSpec("bias", "float32", (2, 4)),
        TensorSpec("count", "int32", (3,)),
    ),
    outputs=(
        TensorSpec("y out", "float32", (2, 3)),
        TensorSpec("above", "bool", (2, 4)),
        TensorSpec("total", "float32", ()),
        TensorSpec("best", "int64", (2,)),
        TensorSpec("twice", "int32", (3,)),
    ),
)
QUANTIZED_GRAPH = ExpectedGraph(
    inputs=(TensorSpec("xq", "uint16", (2, 4)),),
    outputs=(TensorSpec("yq", "uint16", (2, 3)),),
    quantized=frozenset({"xq", "yq"}),
)
SM8650 = ExpectedBinary(
    soc_id=57,
    soc_name="SM8650",
    arch="v75",
    vtcm_mb=8,
    graphs=(FLOAT_GRAPH,),
    build_id="v2.51.0.260929181845",
    qairt="2.51.0",
    optimization_level=3,
)


def test_what_was_planned_passes(inspected: Inspect) -> None:
    assert check_readback(inspected("float-sm8650.bin"), SM8650) == ()
    plan = replace(SM8650, graphs=(QUANTIZED_GRAPH,), optimization_level=None)
    assert check_readback(inspected("quantized-sm8650.bin"), plan) == ()
    require_readback(inspected("quantized-sm8650.bin"), plan)


def test_a_binary_for_another_chip_fails_with_soc_model_named(inspected: Inspect) -> None:
    with pytest.raises(ReadBackMismatch) as caught:
        require_readback(inspected("float-sm8450.bin"), SM8650)
    assert caught.value.id == "QF603"
    assert caught.value.exit_code is ExitCode.GATE
    assert caught.value.message == "not what was planned for SM8650: soc_model, dsp_arch"
    assert caught.value.details == (
        "soc_model: planned 57 (SM8650), found 36",
        "dsp_arch: planned v75, found v69",
    )


def test_wrong_vtcm_fails(inspected: Inspect) -> None:
    found = check_readback(inspected("float-sm8650-vtcm4.bin"), SM8650)
    assert [str(mismatch) for mismatch in found] == ["graph vtcm_mb: planned 8, found 4"]


def test_a_binary_for_a_chip_the_compiler_did_not_know_fails_also_when_no_chip_was_planned(inspected: Inspect) -> None:
    binary = inspected("quantized-unknown-chip.bin")
    plan = ExpectedBinary(0, "unknown", "v68", 4, (QUANTIZED_GRAPH,))
    (mismatch,) = check_readback(binary, plan)
    assert mismatch.field == "soc_model"
    assert mismatch.found.startswith("0, which is no chip")


def test_a_binary_of_another_toolchain_fails(inspected: Inspect) -> None:
    plan = replace(SM8650, build_id="v2.48.40.260702151143", qairt="2.48.40")
    found = check_readback(inspected("float-sm8650.bin"), plan)
    assert [(mismatch.field, mismatch.planned, mismatch.found) for mismatch in found] == [
        ("build_id", "v2.48.40.260702151143", "v2.51.0.260929181845"),
        ("qairt", "2.48.40", "2.51.0"),
    ]


def test_order_is_the_compiler_s_own_and_a_missing_input_fails(inspected: Inspect) -> None:
    graph = replace(FLOAT_GRAPH, inputs=tuple(reversed(FLOAT_GRAPH.inputs)))
    assert check_readback(inspected("float-sm8650.bin"), replace(SM8650, graphs=(graph,))) == ()
    graph = replace(FLOAT_GRAPH, inputs=FLOAT_GRAPH.inputs[1:])
    (mismatch,) = check_readback(inspected("float-sm8650.bin"), replace(SM8650, graphs=(graph,)))
    assert (mismatch.field, mismatch.found) == ("graph inputs", "x/in:0, mask, bias, count")


def test_quantized_where_float_was_planned_fails(inspected: Inspect) -> None:
    graph = ExpectedGraph((TensorSpec("xq", "float32", (2, 4)),), (TensorSpec("yq", "uint16", (2, 3)),), frozenset())
    plan = replace(SM8650, graphs=(graph,), optimization_level=None)
    assert [str(mismatch) for mismatch in check_readback(inspected("quantized-sm8650.bin"), plan)] == [
        "graph input xq dtype: planned float32, found ufixed16",
        "graph output yq dtype: planned uint16, found ufixed16",
    ]


def test_the_compiler_installed_here_writes_what_the_mapping_says(host: Host, tmp_path: Path) -> None:
    host.call("tests.binary.jobs:compile_samples", tmp_path, log=tmp_path / "log", limits=Limits())
    for name, graph in (("float.bin", FLOAT_GRAPH), ("quantized.bin", QUANTIZED_GRAPH)):
        binary = inspect_file(tmp_path / name, host, log=tmp_path / "log")
        assert check_readback(binary, ExpectedBinary(57, "SM8650", "v75", 8, (graph,))) == ()


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
DTYPES = st.sampled_from(["float32", "float16", "int32", "int64", "bool", "uint8", "int8", "uint16", "int16"])
SHAPES = st.lists(st.integers(1, 9), max_size=4).map(tuple)


@st.composite
def graphs(draw: st.DrawFn) -> ExpectedGraph:
    names = draw(st.lists(NAMES, unique=True, min_size=2, max_size=6))
    specs = [TensorSpec(name, draw(DTYPES), draw(SHAPES)) for name in names]
    narrow = [spec.name for spec in specs if spec.dtype in {"uint8", "int8", "uint16", "int16"}]
    quantized = draw(st.none() | st.sets(st.sampled_from(narrow)).map(frozenset)) if narrow else None
    cut = draw(st.integers(1, len(specs) - 1))
    return ExpectedGraph(tuple(specs[:cut]), tuple(specs[cut:]), quantized)


def _as_compiled(spec: TensorSpec, quantized: frozenset[str] | None) -> TensorInfo:
    dtype = possible_dtypes(spec.dtype, None if quantized is None else spec.name in quantized)[-1]
    encoding = QuantizationInfo("scale-offset", (0.5,), (-1,)) if dtype.is_fixed_point else None
    return TensorInfo(spec.name, dtype, dtype.code, qnn_shape(spec.shape), encoding)


def _compiled(plan: ExpectedBinary) -> ContextBinary:
    """The binary a right compiler would write for a plan."""
    return ContextBinary(
        name="g.bin",
        size=1,
        sha256="",
        info_version=3,
        backend_id=6,
        build_id=plan.build_id or "",
        core_api_version=Version(2, 40, 0),
        backend_api_version=Version(5, 51, 0),
        blob_version=Version(4, 0, 6),
        blob_size=1,
        soc_model=plan.soc_id,
        dsp_arch=int(plan.arch[1:]),
        graphs=tuple(
            GraphInfo(
                f"g{index}",
                tuple(_as_compiled(spec, graph.quantized) for spec in graph.inputs),
                tuple(_as_compiled(spec, graph.quantized) for spec in graph.outputs),
                vtcm_mb=plan.vtcm_mb,
                optimization_level=3,
            )
            for index, graph in enumerate(plan.graphs)
        ),
    )


@given(st.lists(graphs(), min_size=1, max_size=3))
def test_any_plan_accepts_the_binary_that_keeps_it(planned: list[ExpectedGraph]) -> None:
    plan = replace(SM8650, graphs=tuple(planned))
    assert check_readback(_compiled(plan), plan) == ()


CHANGES: dict[str, Callable[[TensorInfo], TensorInfo]] = {
    "shape": lambda tensor: replace(tensor, shape=(*tensor.shape, 2)),
    "dtype": lambda tensor: replace(tensor, dtype=QnnDType.FLOAT64, quantization=None),
    "quantization": lambda tensor: replace(
        tensor, quantization=None if tensor.quantization else QuantizationInfo("scale-offset", (1.0,), (0,))
    ),
}


@given(graphs(), st.sampled_from(sorted(CHANGES)), st.data())
def test_any_change_to_any_tensor_is_named_with_the_tensor(
    graph: ExpectedGraph, what: str, data: st.DataObject
) -> None:
    plan = replace(SM8650, graphs=(graph,))
    binary = _compiled(plan)
    index = data.draw(st.integers(0, len(graph.outputs) - 1))
    outputs = list(binary.graphs[0].outputs)
    outputs[index] = CHANGES[what](outputs[index])
    broken = replace(binary, graphs=(replace(binary.graphs[0], outputs=tuple(outputs)),))
    assert [mismatch.field for mismatch in check_readback(broken, plan)] == [
        f"graph output {graph.outputs[index].name} {what}"
    ]


@given(graphs())
def test_a_missing_output_and_a_missing_graph_are_named(graph: ExpectedGraph) -> None:
    plan = replace(SM8650, graphs=(graph,))
    binary = _compiled(plan)
    cut = replace(binary, graphs=(replace(binary.graphs[0], outputs=binary.graphs[0].outputs[:-1]),))
    assert [mismatch.field for mismatch in check_readback(cut, plan)] == ["graph outputs"]
    assert [str(mismatch) for mismatch in check_readback(replace(binary, graphs=()), plan)] == [
        "graphs: planned 1, found 0"
    ]


def test_dynamic_dimensions_other_backends_and_old_formats_fail() -> None:
    plan = replace(SM8650, graphs=(ExpectedGraph((TensorSpec("x", "float32", (1, 2)),), ()),))
    binary = _compiled(plan)
    tensor = replace(binary.graphs[0].inputs[0], dynamic=(False, True))
    moving = replace(binary, graphs=(replace(binary.graphs[0], inputs=(tensor,)),))
    assert [str(mismatch) for mismatch in check_readback(moving, plan)] == [
        "graph input x shape: planned static, found dynamic along axis 1"
    ]
    old = replace(binary, soc_model=None, dsp_arch=None, info_version=1, backend_id=4)
    assert [(mismatch.field, mismatch.found) for mismatch in check_readback(old, plan)] == [
        ("backend", "4"),
        ("soc_model", "nothing (info version 1 does not name the chip)"),
        ("dsp_arch", "nothing"),
    ]


def test_a_dtype_neither_side_knows_is_not_a_match() -> None:
    plan = replace(SM8650, graphs=(ExpectedGraph((TensorSpec("x", "complex64", (1,)),), ()),))
    assert [mismatch.field for mismatch in check_readback(_compiled(plan), plan)] == ["graph input x dtype"]


def test_several_graphs_are_told_apart_by_position_and_planned_name() -> None:
    plan = replace(SM8650, graphs=(replace(FLOAT_GRAPH, name="g0"), replace(FLOAT_GRAPH, name="decoder")))
    assert [str(mismatch) for mismatch in check_readback(_compiled(plan), plan)] == [
        "graph 1 name: planned decoder, found g1"
    ]
