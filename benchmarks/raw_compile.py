"""What people write by hand to get a context binary: one model, one chip, one process.

Usage: raw_compile.py MODEL.onnx CONTEXT.onnx SOC_ID VTCM_MB
"""

import sys

import onnxruntime as ort
import onnxruntime_qnn as qnn

model, context, soc_id, vtcm_mb = sys.argv[1:]
ort.register_execution_provider_library("QNNExecutionProvider", qnn.get_library_path())
npu = [device for device in ort.get_ep_devices() if device.ep_name == "QNNExecutionProvider"][:1]
options = ort.SessionOptions()
options.add_provider_for_devices(
    npu,
    {
        "backend_path": qnn.get_qnn_htp_path(),
        "soc_model": soc_id,
        "vtcm_mb": vtcm_mb,
        "htp_graph_finalization_optimization_mode": "3",
        "enable_htp_fp16_precision": "1",
    },
)
options.add_session_config_entry("ep.context_enable", "1")
options.add_session_config_entry("ep.context_file_path", context)
options.add_session_config_entry("ep.context_embed_mode", "0")
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
ort.InferenceSession(model, options)
