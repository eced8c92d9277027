"""The other side of the peer benchmark: Olive's EPContextBinaryGenerator on one model for one chip. Runs with Olive.

Usage: olive_pass.py MODEL.onnx FOLDER SOC_ID VTCM_MB
"""

import sys

from olive.hardware import AcceleratorSpec
from olive.model import ONNXModelHandler
from olive.passes.olive_pass import create_pass_from_dict
from olive.passes.onnx.context_binary import EPContextBinaryGenerator

model, folder, soc_id, vtcm_mb = sys.argv[1:]
options = {
    "soc_model": soc_id,
    "vtcm_mb": vtcm_mb,
    "htp_graph_finalization_optimization_mode": "3",
    "enable_htp_fp16_precision": "1",
}
generator = create_pass_from_dict(
    EPContextBinaryGenerator,
    {"provider_options": options, "disable_cpu_fallback": True},
    disable_search=True,
    accelerator_spec=AcceleratorSpec(accelerator_type="npu", execution_provider="QNNExecutionProvider"),
)
generator.run(ONNXModelHandler(model_path=model), folder)
