"""A compile that is expected to be refused, in a child process, with everything the compiler leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qnn.toolchains.pip.op_trace import TRACE_FILE


@dataclass(frozen=True)
class Attempt:
    """Compile `model.onnx` of the working directory for SM8650; `severity` 0 logs everything."""

    severity: int


@dataclass(frozen=True)
class Left:
    """The trace's text (empty when there is none), and the error's (empty when there was none)."""

    trace: str
    error: str


def attempt(job: Attempt) -> Left:
    """Runs in a child."""
    from qnn.toolchains.pip.session import ORT_ERRORS, CompileOptions, compiling_session  # noqa: PLC0415

    folder = Path("trace")
    folder.mkdir(exist_ok=True)
    error = ""
    try:
        compiling_session("model.onnx", "ctx.onnx", CompileOptions(57, 8, True, folder), severity=job.severity)
    except ORT_ERRORS as raised:
        error = str(raised)
    trace = folder / TRACE_FILE
    return Left(trace.read_text(encoding="utf-8") if trace.exists() else "", error)
