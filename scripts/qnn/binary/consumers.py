"""What a runtime needs of a context binary, beyond what QNN itself loads. Pure: looks at what was read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from qnn.binary.info import ContextBinary, QnnDType, TensorInfo

# A file is read into memory with a 32-bit size.
_MOST_BYTES = 2**31 - 1
_PLAIN = frozenset({QnnDType.FLOAT32, QnnDType.FLOAT16, QnnDType.INT32})


def complaints(binary: ContextBinary, consumer: str) -> tuple[str, ...]:
    """One sentence for each thing that keeps `consumer` (a key of CONSUMERS) from using the binary; empty: fit."""
    return tuple(CONSUMERS[consumer](binary))


def _sherpa_onnx(binary: ContextBinary) -> Iterator[str]:
    """sherpa-onnx's QNN runtime, read in its public sources (csrc/qnn/utils.cc and qnn-model.cc, 2026-08).

    It takes metadata of version 3 only, runs the first graph whatever its name, fills inputs of float (32 and 16
    bit, or 16-bit unsigned with one scale) and of int32, and goes on with stale buffers after any other.
    """
    if binary.info_version != 3:
        yield f"metadata of version {binary.info_version}; it reads version 3"
    if binary.size > _MOST_BYTES:
        yield f"{binary.size:,} bytes; it reads at most {_MOST_BYTES:,}"
    if not binary.graphs:
        yield "no graph"
        return
    if len(binary.graphs) > 1:
        others = ", ".join(repr(graph.name) for graph in binary.graphs[1:])
        yield f"{len(binary.graphs)} graphs; it runs the first one only, never {others}"
    first = binary.graphs[0]
    for side, tensors in (("input", first.inputs), ("output", first.outputs)):
        for tensor in tensors:
            if not _is_exchanged(tensor):
                yield f"{side} {tensor.name!r} is {_said(tensor)}; it exchanges float32, float16, int32 and ufixed16"


def _is_exchanged(tensor: TensorInfo) -> bool:
    if tensor.dtype is QnnDType.UFIXED16:
        found = tensor.quantization
        return found is not None and found.axis is None and len(found.scales) == 1
    return tensor.dtype in _PLAIN


def _said(tensor: TensorInfo) -> str:
    found = tensor.quantization
    per_axis = " with a scale for each index of an axis" if found is not None and found.axis is not None else ""
    return f"{tensor.dtype_label}{per_axis}"


CONSUMERS: Mapping[str, Callable[[ContextBinary], Iterator[str]]] = {"sherpa-onnx": _sherpa_onnx}
