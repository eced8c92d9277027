"""Ask the compiler about one soc_id. Runs in a child process only: it loads vendor code.

The facts come from two places in the binary that the compiler writes for a one-op graph: the Hexagon version from
libQnnSystem, and the chip's name, VTCM and HVX threads from the note of its settings that the compiler puts beside
every graph as plain text (``…;soc_type=SM8650;…;hvx_threads=4;…;vtcm_size=8388608;…``, QAIRT 2.48 to 2.51). With
vtcm_mb unset that VTCM is the chip's maximum from QAIRT 2.49.40 on; libQnnSystem only repeats what was asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_MODEL = "probe.onnx"
_CONTEXT = "probe_ctx.onnx"
_SHAPE = (1, 8, 8, 32)
_UNSET = 0  # vtcm_mb and 0: the compiler chooses


class ProbeGraph(StrEnum):
    """Which one-op graph is compiled: Mul in fp16, or Mul of uint8 tensors in QDQ form."""

    FP16 = "fp16"
    QUANTIZED = "quantized"


@dataclass(frozen=True)
class Probe:
    """What to compile. The job works in its current folder, which must be empty."""

    soc_id: int
    graph: ProbeGraph


@dataclass(frozen=True)
class Settings:
    """What the compiler notes of the chip; None where the note does not say. `vtcm_bytes` is bytes."""

    name: str | None
    hvx_threads: int | None
    vtcm_bytes: int | None


@dataclass(frozen=True)
class Answer:
    """The compiler took the id and wrote a binary.

    `soc_model` is the id read back, `dsp_arch` the Hexagon version (75), 0 for a chip it knows no Hexagon of;
    `build_id` as ``v2.51.0.260929181845``.
    """

    soc_model: int | None
    dsp_arch: int | None
    settings: Settings
    build_id: str


@dataclass(frozen=True)
class Refusal:
    """The compiler refused the id or the graph."""

    message: str


def probe(request: Probe) -> Answer | Refusal:
    """Compile the graph for the id and read the binary back. A compile without a binary counts as a refusal."""
    from qnn.binary import read_context_binary  # noqa: PLC0415 - vendor libraries, see the module's docstring
    from qnn.toolchains.pip.session import ORT_ERRORS, CompileOptions, compiling_session  # noqa: PLC0415

    Path(_MODEL).write_bytes(_graph(request.graph))
    options = CompileOptions(request.soc_id, vtcm_mb=_UNSET, fp16=request.graph is ProbeGraph.FP16)
    try:
        compiling_session(_MODEL, _CONTEXT, options)
    except ORT_ERRORS as error:
        return Refusal(str(error).splitlines()[0])
    binaries = sorted(Path().glob("*.bin"))
    if len(binaries) != 1:
        return Refusal(f"the compiler ended without an error and left {len(binaries)} binaries")
    found = read_context_binary(binaries[0])
    return Answer(found.soc_model, found.dsp_arch, read_settings(binaries[0].read_bytes()), found.build_id)


def read_settings(binary: bytes) -> Settings:
    """The compiler's note of its settings in a context binary. Pure."""
    name = _noted(binary, b"soc_type", rb"[A-Za-z0-9_]+")
    threads = _noted(binary, b"hvx_threads", rb"\d+")
    vtcm = _noted(binary, b"vtcm_size", rb"\d+")
    return Settings(name, None if threads is None else int(threads), None if vtcm is None else int(vtcm))


def _noted(binary: bytes, key: bytes, value: bytes) -> str | None:
    found = re.search(b";" + key + b"=(" + value + b");", binary)
    return found[1].decode("ascii") if found else None


def _graph(kind: ProbeGraph) -> bytes:
    """The ONNX file: float32 x · y → z, or the same with uint8 inputs and output and Q/DQ nodes around the Mul."""
    from onnx import TensorProto, helper  # noqa: PLC0415

    quantized = kind is ProbeGraph.QUANTIZED
    element = TensorProto.UINT8 if quantized else TensorProto.FLOAT
    ends = {name: helper.make_tensor_value_info(name, element, _SHAPE) for name in "xyz"}
    nodes = [helper.make_node("Mul", ["x", "y"], ["z"], name="mul")]
    scales = []
    if quantized:
        scales = [
            helper.make_tensor("scale", TensorProto.FLOAT, [], [1 / 128]),
            helper.make_tensor("zero", TensorProto.UINT8, [], [128]),
        ]
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["x_float"], name="x_dq"),
            helper.make_node("DequantizeLinear", ["y", "scale", "zero"], ["y_float"], name="y_dq"),
            helper.make_node("Mul", ["x_float", "y_float"], ["z_float"], name="mul"),
            helper.make_node("QuantizeLinear", ["z_float", "scale", "zero"], ["z"], name="z_q"),
        ]
    graph = helper.make_graph(nodes, "probe", [ends["x"], ends["y"]], [ends["z"]], initializer=scales)
    # opset 17 and IR 9 are understood by every ONNX Runtime this package allows.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    data: bytes = model.SerializeToString()
    return data
