"""ONNX Runtime on the CPU, quiet and exact, with its many exception types made one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy
import onnxruntime

from qnn.onnxruntime_errors import ORT_ERRORS

_ERRORS: tuple[type[Exception], ...] = (RuntimeError, ValueError, *ORT_ERRORS)
_FATAL_ONLY = 4


class RuntimeRefusedError(Exception):
    """ONNX Runtime would not load or run a model; its message on one line."""

    def __init__(self, error: Exception) -> None:
        super().__init__(" ".join(str(error).split()))


def load_cpu(model: bytes | Path) -> onnxruntime.InferenceSession:
    """A session on the CPU provider, graph optimisation off, one thread; raises RuntimeRefusedError."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # no thread pool for a run of milliseconds
    try:
        return onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
        )
    except _ERRORS as error:
        raise RuntimeRefusedError(error) from error


def run_cpu(
    session: onnxruntime.InferenceSession, names: Sequence[str] | None, feeds: Mapping[str, numpy.ndarray]
) -> list[numpy.ndarray]:
    """The outputs `names` (None for all, in graph order); raises RuntimeRefusedError."""
    try:
        return list(session.run(names, dict(feeds)))
    except _ERRORS as error:
        raise RuntimeRefusedError(error) from error
