"""The doctor's jobs that load vendor code. Each runs in a fresh fork of a host (see qnn.child.host).

The trial graph multiplies two float32 tensors of shape [1, 8, 8, 32]: the smallest thing that goes all the way through
the compiler, libQnnSystem and the emulator.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from qnn.errors.doctor import TrialFailed

_MODEL = "trial.onnx"
_WRAPPER = "trial_ctx.onnx"
_SHAPE = (1, 8, 8, 32)
_READ_THE_LOG = "read the log"


@dataclass(frozen=True)
class CompileTrial:
    """Compile the trial graph in the current folder, which must be empty. `vtcm_mb` is MB."""

    soc_id: int
    vtcm_mb: int


@dataclass(frozen=True)
class RunTrial:
    """Load what CompileTrial left in the current folder and run it."""

    soc_id: int


@dataclass(frozen=True)
class Compiled:
    """What the binary says of itself."""

    build_id: str
    soc_id: int | None


def load_library(path: str) -> str | None:
    """Load a shared library into this process: None when it loads, else the dynamic linker's reason."""
    try:
        ctypes.CDLL(path)
    except OSError as error:
        return str(error).replace(f"{path}: ", "")
    return None


def qairt_version(_: None) -> str | None:
    """The QAIRT version that the installed onnxruntime-qnn states ("2.51.0"); None when it states none."""
    try:
        from onnxruntime_qnn.build_and_package_info import qnn_version  # noqa: PLC0415 - the wheel may be missing
    except ImportError:
        return None
    return str(qnn_version)


def compile_trial(request: CompileTrial) -> Compiled:
    """Compile and read back. Raises TrialFailed (QF935) and what read_context_binary raises (QF6xx)."""
    from qnn.binary.qnn_system import read_context_binary  # noqa: PLC0415 - see the module's docstring
    from qnn.toolchains.pip.session import ORT_ERRORS, CompileOptions, compiling_session  # noqa: PLC0415

    Path(_MODEL).write_bytes(trial_graph())
    try:
        compiling_session(_MODEL, _WRAPPER, CompileOptions(request.soc_id, request.vtcm_mb, fp16=True))
    except ORT_ERRORS as error:
        raise TrialFailed(str(error).splitlines()[0], remedy=_READ_THE_LOG) from None
    binaries = sorted(Path().glob("*.bin"))
    if len(binaries) != 1:
        raise TrialFailed(
            f"the compiler ended without an error and left {len(binaries)} binaries", remedy=_READ_THE_LOG
        )
    found = read_context_binary(binaries[0])
    return Compiled(found.build_id, found.soc_model)


def run_trial(request: RunTrial) -> float:
    """Run the binary on the emulator: the largest difference to the product, whose values lie between 0.25 and 1.

    Raises TrialFailed (QF935).
    """
    import numpy as np  # noqa: PLC0415 - see the module's docstring

    from qnn.toolchains.pip.session import ORT_ERRORS, loading_session  # noqa: PLC0415

    x = np.linspace(0.5, 1.0, int(np.prod(_SHAPE)), dtype=np.float32).reshape(_SHAPE)
    y = x[..., ::-1].copy()
    try:
        (z,) = loading_session(_WRAPPER, request.soc_id).run(["z"], {"x": x, "y": y})
    except ORT_ERRORS as error:
        raise TrialFailed(str(error).splitlines()[0], remedy=_READ_THE_LOG) from None
    return float(np.abs(z - x * y).max())


def trial_graph() -> bytes:
    """The ONNX file: float32 x · y → z."""
    from onnx import TensorProto, helper  # noqa: PLC0415 - see the module's docstring

    ends = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, _SHAPE) for name in "xyz"}
    node = helper.make_node("Mul", ["x", "y"], ["z"], name="mul")
    graph = helper.make_graph([node], "trial", [ends["x"], ends["y"]], [ends["z"]])
    # opset 17 and IR 9 are understood by every ONNX Runtime this package allows.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    data: bytes = model.SerializeToString()
    return data
