"""ONNX Runtime sessions on the provider of the onnxruntime-qnn wheel. Only ever used in a child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnxruntime as ort
import onnxruntime_qnn

from qnn.chips.table import Soc
from qnn.onnxruntime_errors import ORT_ERRORS

__all__ = ["ORT_ERRORS", "CompileOptions", "compile_options", "compiling_session", "loading_session"]

_PROVIDER = "QNNExecutionProvider"
_WARNINGS = 2


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compile, as the provider takes them (names and values: onnxruntime-qnn 2.x).

    `soc_id` is always a number: an unknown NAME would be accepted with a warning and give a generic v68 binary with
    socModel 0. `vtcm_mb` is always given: unset meant 4 MB up to QAIRT 2.48 and the chip's maximum from 2.49.
    """

    soc_id: int
    vtcm_mb: int
    fp16: bool
    trace_folder: Path | None = None

    def provider_options(self) -> dict[str, str]:
        """The provider options, without the backend's path."""
        options = {
            "soc_model": str(self.soc_id),
            "vtcm_mb": str(self.vtcm_mb),
            "htp_graph_finalization_optimization_mode": "3",
            "enable_htp_fp16_precision": "1" if self.fp16 else "0",
        }
        if self.trace_folder is not None:
            options["enable_framework_op_trace"] = "1"
            options["framework_op_trace_dir"] = str(self.trace_folder)
        return options


def compile_options(soc: Soc, *, float_graph: bool, trace_folder: Path | None = None) -> CompileOptions:
    """The options for a chip, from its row of the table."""
    return CompileOptions(soc.soc_id, soc.vtcm_mb, float_graph and soc.fp16, trace_folder)


def compiling_session(
    model: str, context: str, options: CompileOptions, *, severity: int = _WARNINGS
) -> ort.InferenceSession:
    """A session that compiles `model` and writes the wrapper `context` and its binary next to it.

    Both paths are relative to the working directory, on purpose: the compiler mixes a hash of the path it is given
    into the graph's name, and so into the binary. An operator that does not fit on the NPU is an error. `severity`
    is ONNX Runtime's: 0 logs everything.
    """
    config = {
        "ep.context_enable": "1",
        "ep.context_file_path": context,
        "ep.context_embed_mode": "0",
        "session.disable_cpu_ep_fallback": "1",
    }
    return _session(model, options.provider_options(), config, severity)


def loading_session(wrapper: str, soc_id: int) -> ort.InferenceSession:
    """A session that loads a wrapper ONNX and the context binary it names, and runs on the x86 HTP emulator."""
    session = _session(wrapper, {"soc_model": str(soc_id)}, {}, _WARNINGS)
    # On an error ONNX Runtime would try again on the CPU, where no wrapper runs, and say only that.
    session.disable_fallback()
    return session


def _session(model: str, provider: Mapping[str, str], config: Mapping[str, str], severity: int) -> ort.InferenceSession:
    devices = _devices()
    options = ort.SessionOptions()
    options.log_severity_level = severity
    for key, value in config.items():
        options.add_session_config_entry(key, value)
    options.add_provider_for_devices(devices, {"backend_path": onnxruntime_qnn.get_qnn_htp_path(), **provider})
    return ort.InferenceSession(model, options)


def _devices() -> list[object]:
    if not any(device.ep_name == _PROVIDER for device in ort.get_ep_devices()):
        ort.register_execution_provider_library(_PROVIDER, onnxruntime_qnn.get_library_path())
    # One device is enough: on Linux x86-64 the emulator stands behind the CPU device.
    return [device for device in ort.get_ep_devices() if device.ep_name == _PROVIDER][:1]
