"""Open a context binary with Qualcomm's libQnnSystem.so (through ctypes) and copy out everything it says.

libQnnSystem is vendor code fed with files that may come from anywhere: `read_context_binary` runs in child jobs only;
`inspect_file` is for callers that are not in one. Counts and versions that no compiler writes are refused before they
are used as array lengths.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnn.binary import layout, sniff
from qnn.binary.info import ContextBinary, GraphInfo, QnnDType, QuantizationInfo, TensorInfo, Version
from qnn.binary.universal import Dlc, read_dlc
from qnn.child import Host, Limits
from qnn.errors.readback import (
    CorruptContextBinary,
    FlexibleContextBinary,
    NoQnnSystemLibrary,
    NotAContextBinary,
    UnreadableBinary,
)

LIBRARY_NAME = "libQnnSystem.so"
# More than any real binary holds; what is above is damage, and would make us walk through foreign memory.
_MAX_GRAPHS = 4096
_MAX_TENSORS = 65536
_MAX_RANK = 16
_MAX_CHANNELS = 1 << 20
_MAX_BLOB = 1 << 20
_UNDEFINED = 0x7FFFFFFF
_INSPECT_LIMITS = Limits(seconds=120.0, memory_bytes=4 << 30)


@dataclass(frozen=True)
class ReadRequest:
    """What a child job needs to read one file: the file, and the library when it is not the installed wheel's."""

    path: Path
    library: Path | None = None


def inspect_file(path: Path, host: Host, *, log: Path, library: Path | None = None) -> ContextBinary:
    """`read_context_binary` in a child job of `host`, so that a crash of vendor code is one error (QF501)."""
    found: ContextBinary = host.call(
        "qnn.binary.qnn_system:read_request", ReadRequest(path.absolute(), library), log=log, limits=_INSPECT_LIMITS
    )
    return found


def read_request(request: ReadRequest) -> ContextBinary:
    """The child's side of `inspect_file`."""
    return read_context_binary(request.path, library=request.library)


def read_context_binary(path: Path, *, library: Path | None = None) -> ContextBinary:
    """Everything a context binary says of itself. Loads vendor code into this process: call it in a child job.

    `library` is the libQnnSystem.so to use (default: the one of the installed onnxruntime-qnn). Raises
    UnreadableBinary (QF604), NotAContextBinary (QF600), FlexibleContextBinary (QF601), CorruptContextBinary (QF602),
    NoQnnSystemLibrary (QF605).
    """
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            head = stream.read(sniff.HEAD_BYTES)
            _refuse_wrong_file(path, head, size)
            stream.seek(0)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            # A private mapping: the library gets an address without the file being copied to memory.
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
                return _Reader(path.name, size, digest).read(mapped, library or installed_library())
    except OSError as error:
        raise UnreadableBinary(
            f"{path.name}: {error.strerror or error}", remedy="check the path and that the file may be read"
        ) from None


def installed_library() -> Path:
    """libQnnSystem.so of the installed onnxruntime-qnn wheel. Raises NoQnnSystemLibrary (QF605)."""
    spec = importlib.util.find_spec("onnxruntime_qnn")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for found in (Path(folder) / LIBRARY_NAME, *sorted(Path(folder).glob(f"*/{LIBRARY_NAME}"))):
            if found.is_file():
                return found
    raise NoQnnSystemLibrary(
        f"{LIBRARY_NAME} was not found: the package onnxruntime-qnn is not installed here",
        remedy="install the pinned packages: pip install onnxruntime-qnn",
    )


def _refuse_wrong_file(path: Path, head: bytes, size: int) -> None:
    kind = sniff.sniff(head)
    if kind is sniff.FileKind.CONTEXT:
        stated = sniff.extent(head)
        if stated is None or size < stated.end:
            needed = "its header" if stated is None else f"the {stated.end} bytes its header states"
            raise _corrupt(path.name, f"the file has {size} bytes, fewer than {needed}; it was cut short")
        return
    dlc = read_dlc(path) if kind is sniff.FileKind.ZIP else None
    if dlc is not None and dlc.chips:
        raise _flexible(path, dlc)
    what = kind.value if dlc is None else "a DLC without compiled contexts"
    raise NotAContextBinary(
        f"{path.name} is {what}, not a QNN context binary",
        remedy="give the .bin file of a bundle, or compile the model first with qnn-forge build",
    )


def _flexible(path: Path, dlc: Dlc) -> FlexibleContextBinary:
    return FlexibleContextBinary(
        f"{path.name} is a flexible context binary (FCB) for several chips: {', '.join(dlc.chips)}",
        remedy="inspect a binary compiled for one chip; QnnSystem and the emulator cannot open an FCB",
        details=[f"{record.name}  {record.size} bytes" for record in dlc.records],
    )


def _corrupt(name: str, why: str) -> CorruptContextBinary:
    return CorruptContextBinary(
        f"{name} is damaged: {why}", remedy="fetch or build the file again and compare its sha256 with the manifest"
    )


class _Reader:
    """Walks the answer of one call; holds what error messages need."""

    def __init__(self, name: str, size: int, sha256: str) -> None:
        self.name = name
        self.size = size
        self.sha256 = sha256

    def read(self, mapped: mmap.mmap, library: Path) -> ContextBinary:
        interface = _interface(library)
        first = ctypes.c_char.from_buffer(mapped)
        try:
            with _system_context(interface, library) as handle:
                answer = ctypes.POINTER(layout.BinaryC)()
                address = ctypes.addressof(first)
                error = interface.get_metadata(handle, address, len(mapped), ctypes.byref(answer))
                if error or not answer:
                    raise _corrupt(self.name, f"libQnnSystem refuses it with error {error}")
                return self._binary(answer.contents)
        finally:
            del first  # the mapping cannot be closed while something points into it

    def _binary(self, answer: layout.BinaryC) -> ContextBinary:
        # Every version starts alike and has these fields; where they lie differs between 1 and 2 on one side, 3 on
        # the other.
        if answer.version not in (1, 2, 3):
            raise _corrupt(self.name, f"its info has version {answer.version}; 1 to 3 are known")
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
            raise _corrupt(self.name, f"a graph's info has version {graph.version}; 1 to 3 are known")
        body = graph.v3
        name = _text(body.name)
        inputs = self._tensors(body.inputs, body.input_count, f"inputs of {name}")
        outputs = self._tensors(body.outputs, body.output_count, f"outputs of {name}")
        if graph.version == 1:
            return GraphInfo(name, inputs, outputs)
        updateable = self._tensors(body.updateable, body.updateable_count, f"updateable tensors of {name}")
        htp = self._htp_blob(body) if graph.version == 3 else None
        if htp is None:
            return GraphInfo(name, inputs, outputs, updateable=updateable)
        return GraphInfo(
            name,
            inputs,
            outputs,
            vtcm_mb=_megabytes(htp.vtcm),
            hvx_threads=htp.hvx_threads,
            optimization_level=htp.optimization_level,
            dlbc=bool(htp.dlbc),
            spill_fill_bytes=htp.spill_fill_bytes,
            updateable=updateable,
        )

    def _htp_blob(self, body: layout.GraphV3C) -> layout.HtpGraphBlobV1C | None:
        self._check(body.blob_size <= _MAX_BLOB, f"a graph's note has {body.blob_size} bytes")
        if not body.blob or body.blob_size < ctypes.sizeof(layout.HtpGraphBlobC):
            return None
        blob = layout.HtpGraphBlobC.from_address(body.blob)
        found: layout.HtpGraphBlobV1C = blob.v1
        return found if blob.version == 1 else None

    def _tensors(self, first: Any, count: int, what: str) -> tuple[TensorInfo, ...]:
        self._check(count <= _MAX_TENSORS and (bool(first) or not count), f"it states {count} {what}")
        return tuple(self._tensor(first[index]) for index in range(count))

    def _tensor(self, tensor: layout.TensorC) -> TensorInfo:
        if tensor.version not in (1, 2):
            raise _corrupt(self.name, f"a tensor has version {tensor.version}; 1 and 2 are known")
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
            raise _corrupt(self.name, otherwise)


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


def _interface(library: Path) -> layout.InterfaceC:
    try:
        loaded = ctypes.CDLL(str(library))
        get_providers = layout.GetProvidersFn(("QnnSystemInterface_getProviders", loaded))
    except (OSError, AttributeError) as error:
        raise _unusable(library, str(error).splitlines()[0]) from None
    providers = ctypes.POINTER(ctypes.POINTER(layout.InterfaceC))()
    count = ctypes.c_uint32()
    error_code = get_providers(ctypes.byref(providers), ctypes.byref(count))
    for index in range(0 if error_code else count.value):
        found: layout.InterfaceC = providers[index].contents
        if found.system_api.major == 1 and found.create and found.get_metadata and found.free:
            return found
    raise _unusable(library, "no provider of the system API 1.x that can read metadata")


@contextmanager
def _system_context(interface: layout.InterfaceC, library: Path) -> Iterator[ctypes.c_void_p]:
    handle = ctypes.c_void_p()
    error = interface.create(ctypes.byref(handle))
    if error:
        raise _unusable(library, f"systemContextCreate answers {error}")
    try:
        yield handle
    finally:
        interface.free(handle)


def _unusable(library: Path, why: str) -> NoQnnSystemLibrary:
    return NoQnnSystemLibrary(
        f"{library.name} cannot be used: {why}", remedy="install the pinned onnxruntime-qnn for this platform"
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", errors="replace")


def _version(value: layout.VersionC) -> Version:
    return Version(value.major, value.minor, value.patch)


def _megabytes(value: int) -> int:
    """VTCM in MB. The API reference says the field is MB; QAIRT 2.48 to 2.51 write bytes (measured: 8388608 for 8)."""
    return value >> 20 if value >= 1 << 20 else value
