"""Answers of libQnnSystem built by hand, for the versions and encodings that the compiler of today does not write."""

from __future__ import annotations

import ctypes
from typing import Any

from qnn.binary import layout

_UNDEFINED = 0x7FFFFFFF


class FakeAnswer:
    """Owns every buffer its structures point to."""

    def __init__(self) -> None:
        self._alive: list[Any] = []

    def _array(self, kind: Any, items: list[Any]) -> Any:
        array = (kind * len(items))(*items)
        self._alive.append(array)
        return ctypes.cast(array, ctypes.POINTER(kind))

    def tensor(
        self,
        name: str,
        *,
        code: int = 0x0232,
        shape: tuple[int, ...] = (1, 2),
        version: int = 1,
        quantization: layout.QuantizationC | None = None,
        dynamic: tuple[int, ...] = (),
    ) -> layout.TensorC:
        tensor = layout.TensorC(version=version)
        body = tensor.value.v2
        body.name = name.encode()
        body.data_type = code
        body.rank = len(shape)
        body.dimensions = self._array(ctypes.c_uint32, list(shape))
        body.quantization = quantization or layout.QuantizationC(_UNDEFINED, _UNDEFINED)
        if dynamic:
            body.is_dynamic = self._array(ctypes.c_uint8, list(dynamic))
        return tensor

    def scale_offset(self, scale: float, offset: int) -> layout.QuantizationC:
        quantization = layout.QuantizationC(1, 0)
        quantization.value.scale_offset = layout.ScaleOffsetC(scale, offset)
        return quantization

    def per_axis(self, axis: int, pairs: list[tuple[float, int]]) -> layout.QuantizationC:
        quantization = layout.QuantizationC(1, 1)
        array = self._array(layout.ScaleOffsetC, [layout.ScaleOffsetC(*pair) for pair in pairs])
        quantization.value.axis_scale_offset = layout.AxisScaleOffsetC(axis, len(pairs), array)
        return quantization

    def narrow(self, bitwidth: int, scale: float, offset: int) -> layout.QuantizationC:
        quantization = layout.QuantizationC(1, 2)
        quantization.value.bw_scale_offset = layout.BwScaleOffsetC(bitwidth, scale, offset)
        return quantization

    def narrow_per_axis(
        self, bitwidth: int, axis: int, scales: list[float], offsets: list[int] | None
    ) -> layout.QuantizationC:
        quantization = layout.QuantizationC(1, 3)
        value = layout.BwAxisScaleOffsetC(bitwidth, axis, len(scales), self._array(ctypes.c_float, scales))
        if offsets is not None:
            value.offsets = self._array(ctypes.c_int32, offsets)
        quantization.value.bw_axis_scale_offset = value
        return quantization

    def encoding(self, number: int) -> layout.QuantizationC:
        return layout.QuantizationC(1, number)

    def graph(
        self,
        name: str,
        inputs: list[layout.TensorC],
        outputs: list[layout.TensorC],
        *,
        version: int,
        blob: bytes = b"",
        updateable: list[layout.TensorC] | None = None,
    ) -> layout.GraphC:
        graph = layout.GraphC(version=version)
        graph.v3.name = name.encode()
        graph.v3.input_count = len(inputs)
        graph.v3.inputs = self._array(layout.TensorC, inputs)
        graph.v3.output_count = len(outputs)
        graph.v3.outputs = self._array(layout.TensorC, outputs)
        if updateable:
            graph.v3.updateable_count = len(updateable)
            graph.v3.updateable = self._array(layout.TensorC, updateable)
        if blob:
            buffer = ctypes.create_string_buffer(blob, len(blob))
            self._alive.append(buffer)
            graph.v3.blob_size = len(blob)
            graph.v3.blob = ctypes.addressof(buffer)
        return graph

    def binary(self, version: int, graphs: list[layout.GraphC], **fields: Any) -> layout.BinaryC:
        """An answer of info version 1, 2 or 3; `fields` set members of that version's structure."""
        answer = layout.BinaryC(version=version)
        body = answer.value.v3 if version == 3 else answer.value.v1
        body.backend_id = 6
        body.build_id = b"v2.20.1.240223"
        body.core_api = layout.VersionC(2, 14, 1)
        body.blob_version = layout.VersionC(3, 0, 2)
        body.blob_size = 64
        body.graph_count = len(graphs)
        body.graphs = self._array(layout.GraphC, graphs)
        for name, value in fields.items():
            setattr(body, name, value)
        self._alive.append(answer)
        return answer

    def context_note(self, dsp_arch: int, version: int = 1) -> dict[str, Any]:
        note = layout.HtpContextBlobC(version, dsp_arch)
        self._alive.append(note)
        return {"metadata": ctypes.addressof(note), "metadata_size": ctypes.sizeof(note)}
