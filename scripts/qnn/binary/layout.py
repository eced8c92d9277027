"""Memory layouts of what libQnnSystem.so answers, as ctypes structures (x86-64 and aarch64: natural alignment).

Source: Qualcomm's public QNN API reference, "System/QnnSystemInterface.h", "System/QnnSystemContext.h", "QnnTypes.h",
"QnnDevice.h" and "HTP/QnnHtpSystemContext.h" (QAIRT 2.48 to 2.51 agree). Field names here are ours. Only what
`qnn.binary.qnn_system` reads is spelt out; a union's members that are read through one pointer are one pointer here.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_float, c_int32, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

_Fields = list[tuple[str, Any]]


class VersionC(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("patch", c_uint32)]


class ScaleOffsetC(ctypes.Structure):
    _fields_ = [("scale", c_float), ("offset", c_int32)]


class AxisScaleOffsetC(ctypes.Structure):
    _fields_ = [("axis", c_int32), ("count", c_uint32), ("pairs", POINTER(ScaleOffsetC))]


class BwScaleOffsetC(ctypes.Structure):
    _fields_ = [("bitwidth", c_uint32), ("scale", c_float), ("offset", c_int32)]


class BwAxisScaleOffsetC(ctypes.Structure):
    _fields_ = [
        ("bitwidth", c_uint32),
        ("axis", c_int32),
        ("count", c_uint32),
        ("scales", POINTER(c_float)),
        ("offsets", POINTER(c_int32)),
    ]


class QuantizationUnionC(ctypes.Union):
    _fields_ = [
        ("scale_offset", ScaleOffsetC),
        ("axis_scale_offset", AxisScaleOffsetC),
        ("bw_scale_offset", BwScaleOffsetC),
        ("bw_axis_scale_offset", BwAxisScaleOffsetC),
        ("pointer", c_void_p),
    ]


class QuantizationC(ctypes.Structure):
    _fields_ = [("definition", c_uint32), ("encoding", c_uint32), ("value", QuantizationUnionC)]


class ClientBufferC(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_uint32)]


class SparseParamsC(ctypes.Structure):
    _fields_ = [("kind", c_uint32), ("elements", c_uint32), ("dimensions", c_uint32)]


_TENSOR_V1: _Fields = [
    ("id", c_uint32),
    ("name", c_char_p),
    ("kind", c_uint32),
    ("data_format", c_uint32),
    ("data_type", c_uint32),
    ("quantization", QuantizationC),
    ("rank", c_uint32),
    ("dimensions", POINTER(c_uint32)),
    ("memory_kind", c_uint32),
    ("memory", ClientBufferC),
]


class TensorV1C(ctypes.Structure):
    _fields_ = _TENSOR_V1


class TensorV2C(ctypes.Structure):
    """V1 and, behind it, which dimensions are dynamic, the sparse layout and a flag."""

    _fields_ = [
        *_TENSOR_V1,
        ("is_dynamic", POINTER(c_uint8)),
        ("sparse", SparseParamsC),
        ("is_produced", c_uint8),
    ]


class TensorUnionC(ctypes.Union):
    _fields_ = [("v1", TensorV1C), ("v2", TensorV2C)]


class TensorC(ctypes.Structure):
    _fields_ = [("version", c_uint32), ("value", TensorUnionC)]


class GraphV3C(ctypes.Structure):
    """Graph info version 3; versions 1 and 2 are its beginnings (up to `outputs` and up to `updateable`)."""

    _fields_ = [
        ("name", c_char_p),
        ("input_count", c_uint32),
        ("inputs", POINTER(TensorC)),
        ("output_count", c_uint32),
        ("outputs", POINTER(TensorC)),
        ("updateable_count", c_uint32),
        ("updateable", POINTER(TensorC)),
        ("blob_size", c_uint32),
        ("blob", c_void_p),
        ("start_op", c_uint32),
        ("end_op", c_uint32),
    ]


class GraphC(ctypes.Structure):
    """One element of the array of graphs; the union is as large as its largest member, version 3."""

    _fields_ = [("version", c_uint32), ("v3", GraphV3C)]


_BINARY_HEAD: _Fields = [
    ("backend_id", c_uint32),
    ("build_id", c_char_p),
    ("core_api", VersionC),
    ("backend_api", VersionC),
    ("soc_version", c_char_p),
]
_BINARY_GRAPHS: _Fields = [
    ("blob_size", c_uint64),
    ("context_tensor_count", c_uint32),
    ("context_tensors", POINTER(TensorC)),
    ("graph_count", c_uint32),
    ("graphs", POINTER(GraphC)),
]


class BinaryV1C(ctypes.Structure):
    _fields_ = [
        *_BINARY_HEAD,
        ("hardware_blob_version", VersionC),
        ("blob_version", VersionC),
        ("hardware_blob_size", c_uint32),
        ("hardware_blob", c_void_p),
        *_BINARY_GRAPHS,
    ]


class BinaryV3C(ctypes.Structure):
    _fields_ = [
        *_BINARY_HEAD,
        ("blob_version", VersionC),
        *_BINARY_GRAPHS,
        ("platform", c_void_p),
        ("metadata_size", c_uint32),
        ("metadata", c_void_p),
        ("soc_model", c_uint32),
    ]


class BinaryUnionC(ctypes.Union):
    """Version 2 is version 1 and one pointer behind it, which nothing here reads."""

    _fields_ = [("v1", BinaryV1C), ("v3", BinaryV3C)]


class BinaryC(ctypes.Structure):
    _fields_ = [("version", c_uint32), ("value", BinaryUnionC)]


class HtpGraphBlobV1C(ctypes.Structure):
    """What the HTP backend says of one graph (graph info version 3, `blob`)."""

    _fields_ = [
        ("spill_fill_bytes", c_uint64),
        ("vtcm", c_uint32),
        ("optimization_level", c_uint32),
        ("dlbc", c_uint8),
        ("hvx_threads", c_uint64),
    ]


class HtpGraphBlobC(ctypes.Structure):
    _fields_ = [("version", c_uint32), ("v1", HtpGraphBlobV1C)]


class HtpGraphBlobV2C(ctypes.Structure):
    """What the HTP backend writes behind version 1 of its note: where the graph's bytes lie."""

    _fields_ = [
        ("version", c_uint32),
        ("native_k_channel", c_uint64),
        ("native_v_channel", c_uint64),
        ("safe_to_share_io", c_uint32),
        ("io", c_uint64),
        ("op_data", c_uint64),
        ("constants", c_uint64),
        ("ddr_tensors", c_uint64),
        ("shared_weights", c_uint64),
    ]


class HtpContextBlobC(ctypes.Structure):
    """What the HTP backend says of the whole context (binary info version 3, `metadata`)."""

    _fields_ = [("version", c_uint32), ("dsp_arch", c_uint32)]


# Qnn_ErrorHandle_t is 64 bits wide; the four functions below are the first of the interface table, in this order.
CreateFn = ctypes.CFUNCTYPE(c_uint64, POINTER(c_void_p))
GetBinaryInfoFn = ctypes.CFUNCTYPE(c_uint64, c_void_p, c_void_p, c_uint64, POINTER(POINTER(BinaryC)), POINTER(c_uint64))
GetMetaDataFn = ctypes.CFUNCTYPE(c_uint64, c_void_p, c_void_p, c_uint64, POINTER(POINTER(BinaryC)))
FreeFn = ctypes.CFUNCTYPE(c_uint64, c_void_p)


class InterfaceC(ctypes.Structure):
    """A provider's interface: who it is, then its function table. A function may be null when not offered."""

    _fields_ = [
        ("backend_id", c_uint32),
        ("provider", c_char_p),
        ("system_api", VersionC),
        ("create", CreateFn),
        ("get_binary_info", GetBinaryInfoFn),
        ("get_metadata", GetMetaDataFn),
        ("free", FreeFn),
    ]


GetProvidersFn = ctypes.CFUNCTYPE(c_size_t, POINTER(POINTER(POINTER(InterfaceC))), POINTER(c_uint32))
