"""The other side of the overhead benchmark: the same work with nothing but ONNX Runtime, as one would write it by hand.

Compile for one chip, save, load back, run once on the emulator, run the float model on the CPU, compare.
Usage: raw_onnxruntime.py MODEL.onnx SAMPLE.npz SOC_ID VTCM_MB [SYMBOL=SIZE]...
"""

import sys

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn as qnn

model, sample, soc_id, vtcm, *symbols = sys.argv[1:]
ort.register_execution_provider_library("QNNExecutionProvider", qnn.get_library_path())
npu = [device for device in ort.get_ep_devices() if device.ep_name == "QNNExecutionProvider"][:1]
backend = {"backend_path": qnn.get_qnn_htp_path(), "soc_model": soc_id}
feed = dict(np.load(sample))

options = ort.SessionOptions()
for symbol in symbols:
    name, _, size = symbol.rpartition("=")
    options.add_free_dimension_override_by_name(name, int(size))
options.add_provider_for_devices(
    npu,
    {**backend, "vtcm_mb": vtcm, "htp_graph_finalization_optimization_mode": "3", "enable_htp_fp16_precision": "1"},
)
options.add_session_config_entry("ep.context_enable", "1")
options.add_session_config_entry("ep.context_file_path", "raw_ctx.onnx")
options.add_session_config_entry("ep.context_embed_mode", "0")
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
ort.InferenceSession(model, options)

options = ort.SessionOptions()
options.add_provider_for_devices(npu, backend)
on_npu = ort.InferenceSession("raw_ctx.onnx", options).run(None, feed)

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
on_cpu = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feed)
for npu_out, cpu_out in zip(on_npu, on_cpu, strict=True):
    a, b = npu_out.ravel().astype(np.float64), cpu_out.ravel().astype(np.float64)
    print("cosine", a @ b / np.linalg.norm(a) / np.linalg.norm(b), "max abs", np.abs(a - b).max())
