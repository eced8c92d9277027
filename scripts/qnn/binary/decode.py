"""Turn libQnnSystem's answer (ctypes structures in its memory) into our dataclasses. Loads and calls no vendor code.

Counts and versions that no compiler writes are refused before they are used as array lengths, so that damage is an
error and not a walk through foreign memory.
"""

from __future__ import annotations

import ctypes
from typing import Any

from qnn.binary import layout
from qnn.binary.info import (
    ContextBinary,
    GraphInfo,
    GraphMemory,
    QnnDType,
    QuantizationInfo,
    TensorInfo,
    Version,
)
from qnn.errors.readback import CorruptContextBinary

# More than any real binary holds.
_MAX_GRAPHS = 4096
_MAX_TENSORS = 65536
_MAX_RANK = 16
_MAX_CHANNELS = 1 << 20
_MAX_BLOB = 1 << 20
_UNDEFINED = 0x7FFFFFFF


def corrupt(name: str, why: str) -> CorruptContextBinary:
    """The error for a damaged file called `name`."""
    return CorruptContextBinary(
        f"{name} is damaged: {why}", remedy="fetch or build the file again and compare its sha256 with the manifest"
    )


class Decoder:
    """Decodes one answer; holds what the result and error messages need of the file."""

    def __init__(self, name: str, size: int, sha256: str) -> None:
        self.name = name
        self.size = size
        self.sha256 = sha256

    def decode(self, answer: layout.BinaryC) -> ContextBinary:
        """The whole binary. Everything is copied; nothing refers to `answer` afterwards. Raises QF602."""
        # Every version starts alike and has these fields; where they lie differs between 1 and 2 on one side, 3 on
        # the other.
        if answer.version not in (1, 2, 3):
            raise corrupt(self.name, f"its info has version {answer.version}; 1 to 3 are known")
        body: Any = answer.value.v3 if answer.version == 3 else answer.value.v1
        self._check(body.blob_size <= self.size, f"a context of {body.blob_size} bytes in a file of {self.size}")
        latest = answer.version == 3
        return ContextBinary(
            name=self.name,
            size=self.size,
            sha256=self.sha256,
            info_version=answer.version,
            backend_id=body.backend_id,
            build_id=_text(body.build_id),
            core_api_version=_version(body.core_api),
            backend_api_version=_version(body.backend_api),
            blob_version=_version(body.blob_version),
            blob_size=body.blob_size,
            graphs=self._graphs(body.graphs, body.graph_count),
            soc_model=body.soc_model if latest else None,
            dsp_arch=self._dsp_arch(body.metadata, body.metadata_size) if latest else None,
            soc_version=_text(body.soc_version),
            context_tensors=self._tensors(body.context_tensors, body.context_tensor_count, "context tensors"),
        )

    def _dsp_arch(self, address: int | None, size: int) -> int | None:
        if not address or size < ctypes.sizeof(layout.HtpContextBlobC):
            return None
        blob = layout.HtpContextBlobC.from_address(address)
        return int(blob.dsp_arch) if blob.version == 1 else None

    def _graphs(self, first: Any, count: int) -> tuple[GraphInfo, ...]:
        self._check(count <= _MAX_GRAPHS and (bool(first) or not count), f"it states {count} graphs")
        return tuple(self._graph(first[index]) for index in range(count))

    def _graph(self, graph: layout.GraphC) -> GraphInfo:
        if graph.version not in (1, 2, 3):
            raise corrupt(self.name, f"a graph's info has version {graph.version}; 1 to 3 are known")
        body = graph.v3
        name = _text(body.name)
        inputs = self._tensors(body.inputs, body.input_count, f"inputs of {name}")
        outputs = self._tensors(body.outputs, body.output_count, f"outputs of {name}")
        if graph.version == 1:
            return GraphInfo(name, inputs, outputs)
        updateable = self._tensors(body.updateable, body.updateable_count, f"updateable tensors of {name}")
        notes = self._htp_notes(body) if graph.version == 3 else None
        if notes is None:
            return GraphInfo(name, inputs, outputs, updateable=updateable)
        htp, memory = notes
        return GraphInfo(
            name,
            inputs,
            outputs,
            vtcm_mb=_megabytes(htp.vtcm),
            hvx_threads=htp.hvx_threads,
            optimization_level=htp.optimization_level,
            dlbc=bool(htp.dlbc),
            spill_fill_bytes=htp.spill_fill_bytes,
            memory=memory,
            updateable=updateable,
        )

    def _htp_notes(self, body: layout.GraphV3C) -> tuple[layout.HtpGraphBlobV1C, GraphMemory | None] | None:
        self._check(body.blob_size <= _MAX_BLOB, f"a graph's note has {body.blob_size} bytes")
        if not body.blob or body.blob_size < ctypes.sizeof(layout.HtpGraphBlobC):
            return None
        blob = layout.HtpGraphBlobC.from_address(body.blob)
        if blob.version != 1:
            return None
        end = ctypes.sizeof(layout.HtpGraphBlobC)
        if body.blob_size < end + ctypes.sizeof(layout.HtpGraphBlobV2C):
            return blob.v1, None
        more = layout.HtpGraphBlobV2C.from_address(body.blob + end)
        memory = GraphMemory(more.io, more.constants, more.ddr_tensors, more.shared_weights)
        return blob.v1, memory if more.version == 2 else None

    def _tensors(self, first: Any, count: int, what: str) -> tuple[TensorInfo, ...]:
        self._check(count <= _MAX_TENSORS and (bool(first) or not count), f"it states {count} {what}")
        return tuple(self._tensor(first[index]) for index in range(count))

    def _tensor(self, tensor: layout.TensorC) -> TensorInfo:
        if tensor.version not in (1, 2):
            raise corrupt(self.name, f"a tensor has version {tensor.version}; 1 and 2 are known")
        body = tensor.value.v2
        name = _text(body.name)
        self._check(body.rank <= _MAX_RANK and (bool(body.dimensions) or not body.rank), f"{name} has rank {body.rank}")
        marks = body.is_dynamic if tensor.version == 2 else None
        return TensorInfo(
            name=name,
            dtype=QnnDType.of_code(body.data_type),
            dtype_code=body.data_type,
            shape=tuple(body.dimensions[axis] for axis in range(body.rank)),
            quantization=self._quantization(body.quantization, name),
            dynamic=tuple(bool(marks[axis]) for axis in range(body.rank)) if marks else (),
        )

    def _quantization(self, params: layout.QuantizationC, name: str) -> QuantizationInfo | None:
        if _UNDEFINED in (params.definition, params.encoding):
            return None
        value = params.value
        if params.encoding == 0:
            pair = value.scale_offset
            return QuantizationInfo("scale-offset", (pair.scale,), (pair.offset,))
        if params.encoding == 1:
            per_axis = value.axis_scale_offset
            self._check_channels(per_axis.count, per_axis.pairs, name)
            pairs = [per_axis.pairs[index] for index in range(per_axis.count)]
            return QuantizationInfo(
                "axis-scale-offset",
                tuple(pair.scale for pair in pairs),
                tuple(pair.offset for pair in pairs),
                axis=per_axis.axis,
            )
        if params.encoding == 2:
            narrow = value.bw_scale_offset
            return QuantizationInfo("bw-scale-offset", (narrow.scale,), (narrow.offset,), bitwidth=narrow.bitwidth)
        if params.encoding == 3:
            return self._narrow_per_axis(value.bw_axis_scale_offset, name)
        return QuantizationInfo(_ENCODINGS.get(params.encoding, f"unknown-{params.encoding}"))

    def _narrow_per_axis(self, encoding: layout.BwAxisScaleOffsetC, name: str) -> QuantizationInfo:
        self._check_channels(encoding.count, encoding.scales, name)
        indices = range(encoding.count)
        return QuantizationInfo(
            "bw-axis-scale-offset",
            tuple(encoding.scales[index] for index in indices),
            # No offsets means symmetric: all are zero.
            tuple(encoding.offsets[index] if encoding.offsets else 0 for index in indices),
            axis=encoding.axis,
            bitwidth=encoding.bitwidth,
        )

    def _check_channels(self, count: int, first: Any, name: str) -> None:
        self._check(count <= _MAX_CHANNELS and (bool(first) or not count), f"{name} has {count} scales")

    def _check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise corrupt(self.name, otherwise)


# Public API, "QnnTypes.h" Qnn_QuantizationEncoding_t; 0 to 3 are read out, these are only named.
_ENCODINGS = {
    4: "block",
    5: "blockwise-expansion",
    6: "vector",
    7: "float-block",
    8: "bw-axis-scale-offset-mapped",
    9: "bw-block-mapped",
    10: "bw-blockwise-expansion-mapped",
    11: "bw-float-block",
}


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", errors="replace")


def _version(value: layout.VersionC) -> Version:
    return Version(value.major, value.minor, value.patch)


def _megabytes(value: int) -> int:
    """VTCM in MB. The API reference says the field is MB; QAIRT 2.48 to 2.51 write bytes (measured: 8388608 for 8)."""
    return value >> 20 if value >= 1 << 20 else value
