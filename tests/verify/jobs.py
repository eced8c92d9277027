"""Jobs that the tests run in a child host: what the installed emulator answers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import onnxruntime_qnn
from numpy.typing import NDArray
from onnx import TensorProto, helper


@dataclass(frozen=True)
class OneOp:
    """A graph of one operator from x to y, both of the same shape."""

    operator: str
    x: NDArray[np.float32]
    soc_id: int


def emulate(op: OneOp) -> NDArray[Any]:
    """Compile the operator in fp16 and run it on the emulator."""
    ort.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
    devices = [device for device in ort.get_ep_devices() if device.ep_name == "QNNExecutionProvider"][:1]
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    provider: Mapping[str, str] = {
        "backend_path": onnxruntime_qnn.get_qnn_htp_path(),
        "soc_model": str(op.soc_id),
        "vtcm_mb": "8",
        "enable_htp_fp16_precision": "1",
    }
    options.add_provider_for_devices(devices, provider)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        onnx.save(_model(op), "op.onnx")
        (y,) = ort.InferenceSession("op.onnx", options).run(["y"], {"x": op.x})
    result: NDArray[Any] = y
    return result


def _model(op: OneOp) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, op.x.shape) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node(op.operator, ["x"], ["y"])], "op", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
