"""The read-back gate: does a context binary hold what was planned? Pure, and it names everything that differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qnn.binary.info import ContextBinary, GraphInfo, QnnDType, TensorInfo
from qnn.binary.mapping import possible_dtypes, qnn_shape
from qnn.errors.base import Place
from qnn.errors.readback import ReadBackMismatch
from qnn.tensors import TensorSpec

# Public API, "QnnCommon.h": the HTP backend's number.
HTP_BACKEND_ID = 6


@dataclass(frozen=True)
class ExpectedGraph:
    """One planned graph: its ONNX inputs and outputs, in any order.

    `quantized` names the inputs and outputs that are fixed point with scale and offset; None when that is not known,
    then 8- and 16-bit integers may be either. `name` is None when the compiler chooses it (the ONNX Runtime provider
    puts a hash into it).
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    quantized: frozenset[str] | None = None
    name: str | None = None


@dataclass(frozen=True)
class ExpectedBinary:
    """What a compile was asked for. `arch` as in the chip table ("v75"), `vtcm_mb` in MB.

    `build_id` is the toolchain's exact QAIRT build ("v2.51.0.260929181845") and `qairt` its version ("2.51.0"); None
    where it is not known beforehand. `optimization_level` is the O mode, None when it was left to the compiler.
    """

    soc_id: int
    soc_name: str
    arch: str
    vtcm_mb: int
    graphs: tuple[ExpectedGraph, ...]
    build_id: str | None = None
    qairt: str | None = None
    optimization_level: int | None = None


@dataclass(frozen=True)
class Mismatch:
    """One difference: which field, what was planned, what the binary holds."""

    field: str
    planned: str
    found: str

    def __str__(self) -> str:
        return f"{self.field}: planned {self.planned}, found {self.found}"


def check_readback(binary: ContextBinary, plan: ExpectedBinary) -> tuple[Mismatch, ...]:
    """Every difference between a binary and its plan, in a fixed order; empty when the binary is what was planned."""
    return (*_chip(binary, plan), *_toolchain(binary, plan), *_graphs(binary, plan))


def require_readback(binary: ContextBinary, plan: ExpectedBinary) -> None:
    """Raise ReadBackMismatch (QF603) with every difference as a detail line, when there is one."""
    mismatches = check_readback(binary, plan)
    if not mismatches:
        return
    fields = ", ".join(dict.fromkeys(mismatch.field for mismatch in mismatches))
    raise ReadBackMismatch(
        f"not what was planned for {plan.soc_name}: {fields}",
        remedy="take the binary of this chip and toolchain; after a build, report it with the compile log",
        place=Place(binary.name),
        details=[str(mismatch) for mismatch in mismatches],
    )


def _differ(field: str, planned: object, found: object) -> Iterator[Mismatch]:
    if planned != found:
        yield Mismatch(field, str(planned), "nothing" if found is None else str(found))


def _chip(binary: ContextBinary, plan: ExpectedBinary) -> Iterator[Mismatch]:
    yield from _differ("backend", HTP_BACKEND_ID, binary.backend_id)
    if binary.soc_model != plan.soc_id or not binary.soc_model:
        yield Mismatch("soc_model", f"{plan.soc_id} ({plan.soc_name})", _found_chip(binary))
    yield from _differ("dsp_arch", plan.arch, None if binary.dsp_arch is None else f"v{binary.dsp_arch}")


def _found_chip(binary: ContextBinary) -> str:
    if binary.soc_model is None:
        return f"nothing (info version {binary.info_version} does not name the chip)"
    if binary.soc_model == 0:
        return "0, which is no chip: the compiler did not know the one it was given"
    return str(binary.soc_model)


def _toolchain(binary: ContextBinary, plan: ExpectedBinary) -> Iterator[Mismatch]:
    if plan.build_id is not None:
        yield from _differ("build_id", plan.build_id, binary.build_id)
    if plan.qairt is not None:
        yield from _differ("qairt", plan.qairt, binary.qairt_version)


def _graphs(binary: ContextBinary, plan: ExpectedBinary) -> Iterator[Mismatch]:
    yield from _differ("graphs", len(plan.graphs), len(binary.graphs))
    for index, (expected, graph) in enumerate(zip(plan.graphs, binary.graphs, strict=False)):
        at = f"graph {index}" if len(plan.graphs) > 1 else "graph"
        if expected.name is not None:
            yield from _differ(f"{at} name", expected.name, graph.name)
        yield from _differ(f"{at} vtcm_mb", plan.vtcm_mb, graph.vtcm_mb)
        if plan.optimization_level is not None:
            yield from _differ(f"{at} optimization_level", plan.optimization_level, graph.optimization_level)
        yield from _io(at, expected, graph)


def _io(at: str, expected: ExpectedGraph, graph: GraphInfo) -> Iterator[Mismatch]:
    for side, planned, found in (
        ("inputs", expected.inputs, graph.inputs),
        ("outputs", expected.outputs, graph.outputs),
    ):
        # Not the order: the compiler moves outputs that only pass an input through (seen with QAIRT 2.51). Whoever
        # reads a binary goes by name, and the manifest lists its own order.
        names = [tensor.name for tensor in found]
        if sorted(names) != sorted(spec.name for spec in planned):
            yield Mismatch(f"{at} {side}", ", ".join(spec.name for spec in planned), ", ".join(names) or "nothing")
        by_name = {tensor.name: tensor for tensor in found}
        for spec in planned:
            if spec.name in by_name:
                quantized = None if expected.quantized is None else spec.name in expected.quantized
                yield from _tensor(f"{at} {side[:-1]} {spec.name}", spec, by_name[spec.name], quantized)


def _tensor(at: str, spec: TensorSpec, tensor: TensorInfo, quantized: bool | None) -> Iterator[Mismatch]:
    possible = possible_dtypes(spec.dtype, quantized)
    if tensor.dtype not in possible or tensor.dtype is QnnDType.UNKNOWN:
        yield Mismatch(f"{at} dtype", " or ".join(dtype.label for dtype in possible), tensor.dtype_label)
    yield from _differ(f"{at} shape", qnn_shape(spec.shape), tensor.shape)
    if any(tensor.dynamic):
        yield Mismatch(f"{at} shape", "static", f"dynamic along {_axes(tensor.dynamic)}")
    if tensor.dtype.is_fixed_point != (tensor.quantization is not None):
        planned = "scale and offset" if tensor.dtype.is_fixed_point else "none"
        yield Mismatch(
            f"{at} quantization", planned, "none" if tensor.quantization is None else tensor.quantization.encoding
        )


def _axes(dynamic: tuple[bool, ...]) -> str:
    return "axis " + ", ".join(str(axis) for axis, marked in enumerate(dynamic) if marked)
