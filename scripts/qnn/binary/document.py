"""A context binary as one JSON document, for `qnn-forge inspect --json` and for machines that read it."""

from __future__ import annotations

from typing import Any

from qnn.binary.info import ContextBinary, GraphInfo, QuantizationInfo, TensorInfo

SCHEMA_VERSION = 1


def to_document(binary: ContextBinary, *, soc_name: str | None, remarks: tuple[str, ...] = ()) -> dict[str, Any]:
    """Everything known of a binary in JSON's types; `soc_name` is the chip's name where the chip table has it.

    Sizes end in `_bytes`; what the binary does not hold is null.
    """
    return {
        "file": binary.name,
        "size_bytes": binary.size,
        "sha256": binary.sha256,
        "soc_model": binary.soc_model,
        "soc": soc_name,
        "dsp_arch": None if binary.dsp_arch is None else f"v{binary.dsp_arch}",
        "build_id": binary.build_id,
        "qairt": binary.qairt_version,
        "backend_id": binary.backend_id,
        "core_api": str(binary.core_api_version),
        "backend_api": str(binary.backend_api_version),
        "blob_version": str(binary.blob_version),
        "blob_bytes": binary.blob_size,
        "info_version": binary.info_version,
        "graphs": [_graph(graph) for graph in binary.graphs],
        "context_tensors": [_tensor(tensor) for tensor in binary.context_tensors],
        "remarks": list(remarks),
    }


def _graph(graph: GraphInfo) -> dict[str, Any]:
    memory = graph.memory
    return {
        "name": graph.name,
        "vtcm_mb": graph.vtcm_mb,
        "hvx_threads": graph.hvx_threads,
        "optimization_level": graph.optimization_level,
        "dlbc": graph.dlbc,
        "spill_fill_bytes": graph.spill_fill_bytes,
        "memory": memory
        and {
            "io_bytes": memory.io,
            "constants_bytes": memory.constants,
            "ddr_tensors_bytes": memory.ddr_tensors,
            "shared_weights_bytes": memory.shared_weights,
        },
        "inputs": [_tensor(tensor) for tensor in graph.inputs],
        "outputs": [_tensor(tensor) for tensor in graph.outputs],
        "updateable": [_tensor(tensor) for tensor in graph.updateable],
    }


def _tensor(tensor: TensorInfo) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype_label,
        "numpy": tensor.dtype.numpy,
        "shape": list(tensor.shape),
        "dynamic": list(tensor.dynamic) if any(tensor.dynamic) else None,
        "quantization": tensor.quantization and _quantization(tensor.quantization),
    }


def _quantization(quantization: QuantizationInfo) -> dict[str, Any]:
    return {
        "encoding": quantization.encoding,
        "scales": list(quantization.scales),
        "offsets": list(quantization.offsets),
        "axis": quantization.axis,
        "bitwidth": quantization.bitwidth,
    }
