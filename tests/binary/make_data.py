"""Makes the context binaries in data/ with the installed onnxruntime-qnn: ``python tests/binary/make_data.py``.

They are committed because two of them are wrong on purpose and every test run must meet the same bytes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import onnxruntime_qnn
from onnx import TensorProto, helper, numpy_helper

DATA = Path(__file__).parent / "data"


def float_graph() -> onnx.ModelProto:
    """Float, integer, boolean and scalar inputs and outputs, with names that need care."""
    nodes = [
        helper.make_node("Where", ["mask", "x/in:0", "bias"], ["masked"]),
        helper.make_node("MatMul", ["masked", "weight"], ["y out"]),
        helper.make_node("Greater", ["x/in:0", "bias"], ["above"]),
        helper.make_node("ReduceSum", ["y out"], ["total"], keepdims=0),
        helper.make_node("ArgMax", ["y out"], ["best"], axis=1, keepdims=0),
        helper.make_node("Add", ["count", "count"], ["twice"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x/in:0", TensorProto.FLOAT, [2, 4]),
        helper.make_tensor_value_info("mask", TensorProto.BOOL, [2, 4]),
        helper.make_tensor_value_info("bias", TensorProto.FLOAT, [2, 4]),
        helper.make_tensor_value_info("count", TensorProto.INT32, [3]),
    ]
    outputs = [
        helper.make_tensor_value_info("y out", TensorProto.FLOAT, [2, 3]),
        helper.make_tensor_value_info("above", TensorProto.BOOL, [2, 4]),
        helper.make_tensor_value_info("total", TensorProto.FLOAT, []),
        helper.make_tensor_value_info("best", TensorProto.INT64, [2]),
        helper.make_tensor_value_info("twice", TensorProto.INT32, [3]),
    ]
    weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return _model("float", nodes, inputs, outputs, {"weight": weight})


def quantized_graph() -> onnx.ModelProto:
    """A MatMul whose graph input and output are 16-bit fixed point."""
    nodes = [
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"]),
        helper.make_node("MatMul", ["xd", "wd"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "ys", "yz"], ["yq"]),
    ]
    values = {
        "xs": np.float32(0.25),
        "xz": np.uint16(1000),
        "ws": np.float32(0.5),
        "wz": np.int8(0),
        "wq": np.arange(-6, 6, dtype=np.int8).reshape(4, 3),
        "ys": np.float32(0.125),
        "yz": np.uint16(32768),
    }
    inputs = [helper.make_tensor_value_info("xq", TensorProto.UINT16, [2, 4])]
    outputs = [helper.make_tensor_value_info("yq", TensorProto.UINT16, [2, 3])]
    return _model("quantized", nodes, inputs, outputs, {name: np.asarray(value) for name, value in values.items()})


def _model(
    name: str,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    values: dict[str, np.ndarray],
) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(value, key) for key, value in values.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def compile_to(target: Path, model: onnx.ModelProto, **options: str) -> None:
    """Compile in a fork (the compiler keeps state between graphs) and copy the binary to `target`."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        if status:
            raise RuntimeError(f"{target.name}: the compiler failed")
        return
    ort.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        onnx.save(model, "model.onnx")
        session = ort.SessionOptions()
        devices = [device for device in ort.get_ep_devices() if device.ep_name == "QNNExecutionProvider"]
        session.add_provider_for_devices(devices[:1], {"backend_path": onnxruntime_qnn.get_qnn_htp_path(), **options})
        session.add_session_config_entry("ep.context_enable", "1")
        session.add_session_config_entry("ep.context_file_path", "model_ctx.onnx")
        session.add_session_config_entry("ep.context_embed_mode", "0")
        session.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        ort.InferenceSession("model.onnx", session)
        shutil.copyfile("model_ctx_qnn.bin", target)
    os._exit(0)


def main() -> None:
    """Every binary of data/; the names say what they are."""
    fp16 = {"enable_htp_fp16_precision": "1", "htp_graph_finalization_optimization_mode": "3"}
    compile_to(DATA / "float-sm8650.bin", float_graph(), soc_model="57", vtcm_mb="8", **fp16)
    compile_to(DATA / "float-sm8450.bin", float_graph(), soc_model="36", vtcm_mb="8", **fp16)
    compile_to(DATA / "float-sm8650-vtcm4.bin", float_graph(), soc_model="57", vtcm_mb="4", **fp16)
    compile_to(DATA / "quantized-sm8650.bin", quantized_graph(), soc_model="57", vtcm_mb="8")
    compile_to(DATA / "quantized-unknown-chip.bin", quantized_graph(), soc_model="SM9999")
    compile_to(DATA / "universal.bin", quantized_graph(), soc_model="30,36", htp_arch="68,69", vtcm_mb="4,8")


if __name__ == "__main__":
    main()
