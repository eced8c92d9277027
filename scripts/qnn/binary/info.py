"""What a context binary says of itself, copied out of libQnnSystem's memory into plain frozen dataclasses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_QAIRT_VERSION = re.compile(r"^v?(\d+\.\d+\.\d+)")


class QnnDType(Enum):
    """QNN's tensor element types: our name, QNN's code (public API, "QnnTypes.h" Qnn_DataType_t), NumPy's equivalent.

    Fixed-point types hold integers; `(q + offset) * scale` is the value. Where NumPy has no such type the equivalent
    is the type of the stored bytes, or None when elements are smaller than a byte or have no fixed size.
    """

    INT8 = ("int8", 0x0008, "int8")
    INT16 = ("int16", 0x0016, "int16")
    INT32 = ("int32", 0x0032, "int32")
    INT64 = ("int64", 0x0064, "int64")
    UINT8 = ("uint8", 0x0108, "uint8")
    UINT16 = ("uint16", 0x0116, "uint16")
    UINT32 = ("uint32", 0x0132, "uint32")
    UINT64 = ("uint64", 0x0164, "uint64")
    FLOAT16 = ("float16", 0x0216, "float16")
    BFLOAT16 = ("bfloat16", 0x0226, "uint16")
    FLOAT32 = ("float32", 0x0232, "float32")
    FLOAT64 = ("float64", 0x0264, "float64")
    SFIXED4 = ("sfixed4", 0x0304, None)
    SFIXED8 = ("sfixed8", 0x0308, "int8")
    SFIXED16 = ("sfixed16", 0x0316, "int16")
    SFIXED32 = ("sfixed32", 0x0332, "int32")
    UFIXED4 = ("ufixed4", 0x0404, None)
    UFIXED8 = ("ufixed8", 0x0408, "uint8")
    UFIXED16 = ("ufixed16", 0x0416, "uint16")
    UFIXED32 = ("ufixed32", 0x0432, "uint32")
    BOOL8 = ("bool8", 0x0508, "bool")
    STRING = ("string", 0x0608, None)
    UNKNOWN = ("unknown", 0x7FFFFFFF, None)

    def __init__(self, label: str, code: int, numpy: str | None) -> None:
        self.label = label
        self.code = code
        self.numpy = numpy

    @classmethod
    def of_code(cls, code: int) -> QnnDType:
        """The type of a code; UNKNOWN for a code this version does not know (TensorInfo.dtype_code keeps it)."""
        return _BY_CODE.get(code, cls.UNKNOWN)

    @property
    def is_fixed_point(self) -> bool:
        """Whether elements are integers that mean something only with a scale and an offset."""
        return 0x0300 <= self.code < 0x0500


_BY_CODE = {dtype.code: dtype for dtype in QnnDType}


@dataclass(frozen=True, order=True)
class Version:
    """A three-part version as the QNN API writes it."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True)
class QuantizationInfo:
    """How a tensor's integers become values: `(q + offset) * scale`.

    `encoding` is our name for the QNN encoding. Per tensor: one scale and offset, `axis` None. Per axis: one pair for
    each index along `axis`. Encodings that are named but not read out (the block ones) have no scales.
    """

    encoding: str
    scales: tuple[float, ...] = ()
    offsets: tuple[int, ...] = ()
    axis: int | None = None
    bitwidth: int | None = None


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of a graph. `dtype_code` is QNN's number, also when `dtype` is UNKNOWN."""

    name: str
    dtype: QnnDType
    dtype_code: int
    shape: tuple[int, ...]
    quantization: QuantizationInfo | None = None
    dynamic: tuple[bool, ...] = ()

    @property
    def dtype_label(self) -> str:
        """The dtype's name, with the code of one that is unknown."""
        return self.dtype.label if self.dtype is not QnnDType.UNKNOWN else f"unknown-{self.dtype_code:#06x}"


@dataclass(frozen=True)
class GraphMemory:
    """Where a graph's bytes lie on the device: I/O buffers, constants, tensors spilt to DDR, weights shared between
    graphs. Public API, "HTP/QnnHtpSystemContext.h", graph info blob version 2; all in bytes."""

    io: int
    constants: int
    ddr_tensors: int
    shared_weights: int


@dataclass(frozen=True)
class GraphInfo:
    """One graph: its name, inputs and outputs in the order of the binary, and what the HTP backend noted of it.

    Sizes are bytes, `vtcm_mb` is MB; `hvx_threads` 0 means that the compiler was not told a number. A field is None
    when the binary (info version 1 or 2, or another backend) does not hold it.
    """

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    vtcm_mb: int | None = None
    hvx_threads: int | None = None
    optimization_level: int | None = None
    dlbc: bool | None = None
    spill_fill_bytes: int | None = None
    memory: GraphMemory | None = None
    updateable: tuple[TensorInfo, ...] = ()


@dataclass(frozen=True)
class ContextBinary:
    """A context binary read back. `name` is the file's name without folders; `size` and `blob_size` are bytes.

    `soc_model` is QNN's number of the chip, 0 when the compiler was given no chip it knew, None when the info version
    has no such field. `dsp_arch` is the Hexagon version as a number (75 for v75) or None.
    """

    name: str
    size: int
    sha256: str
    info_version: int
    backend_id: int
    build_id: str
    core_api_version: Version
    backend_api_version: Version
    blob_version: Version
    blob_size: int
    graphs: tuple[GraphInfo, ...]
    soc_model: int | None = None
    dsp_arch: int | None = None
    soc_version: str = ""
    context_tensors: tuple[TensorInfo, ...] = ()

    @property
    def qairt_version(self) -> str | None:
        """The QAIRT version in the build id ("2.51.0" of "v2.51.0.260929181845"), or None when it holds none."""
        return qairt_version(self.build_id)


def qairt_version(build_id: str) -> str | None:
    """ "2.51.0" of "v2.51.0.260929181845"; None when the build id does not begin with a version."""
    found = _QAIRT_VERSION.match(build_id)
    return found.group(1) if found else None
