"""ONNX Runtime's exceptions. They have no common base class; these are the ones a session or a run can raise."""

from __future__ import annotations

from onnxruntime.capi import onnxruntime_pybind11_state as _state

_NAMES = (
    "EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoaded",
    "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NotImplemented", "RuntimeException",
)  # fmt: skip
ORT_ERRORS: tuple[type[Exception], ...] = tuple(getattr(_state, name) for name in _NAMES if hasattr(_state, name))
