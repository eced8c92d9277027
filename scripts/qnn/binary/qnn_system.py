"""Open a context binary with Qualcomm's libQnnSystem.so (through ctypes) and copy out everything it says.

libQnnSystem is vendor code fed with files that may come from anywhere: `read_context_binary` runs in child jobs only;
`inspect_file` is for callers that are not in one.
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
from typing import TYPE_CHECKING

from qnn.binary import layout, sniff
from qnn.binary.decode import Decoder, corrupt
from qnn.binary.info import ContextBinary
from qnn.child import Host, Limits
from qnn.errors.readback import (
    FlexibleContextBinary,
    NoQnnSystemLibrary,
    NotAContextBinary,
    UnreadableBinary,
)

if TYPE_CHECKING:
    from qnn.binary.universal import Dlc

LIBRARY_NAME = "libQnnSystem.so"
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
                return _ask(mapped, library or installed_library(), Decoder(path.name, size, digest))
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
            raise corrupt(path.name, f"the file has {size} bytes, fewer than {needed}; it was cut short")
        return
    dlc = _dlc(path) if kind is sniff.FileKind.ZIP else None
    if dlc is not None and dlc.chips:
        raise _flexible(path, dlc)
    what = kind.value if dlc is None else "a DLC without compiled contexts"
    raise NotAContextBinary(
        f"{path.name} is {what}, not a QNN context binary",
        remedy="give the .bin file of a bundle, or compile the model first with qnn-forge build",
    )


def _dlc(path: Path) -> Dlc | None:
    from qnn.binary.universal import read_dlc  # noqa: PLC0415 - zipfile is only needed for a wrong file

    return read_dlc(path)


def _flexible(path: Path, dlc: Dlc) -> FlexibleContextBinary:
    return FlexibleContextBinary(
        f"{path.name} is a flexible context binary (FCB) for several chips: {', '.join(dlc.chips)}",
        remedy="inspect a binary compiled for one chip; QnnSystem and the emulator cannot open an FCB",
        details=[f"{record.name}  {record.size} bytes" for record in dlc.records],
    )


def _ask(mapped: mmap.mmap, library: Path, decoder: Decoder) -> ContextBinary:
    """Have the library parse the mapped file, and copy its answer out before it is freed."""
    interface = _interface(library)
    first = ctypes.c_char.from_buffer(mapped)
    try:
        with _system_context(interface, library) as handle:
            answer = ctypes.POINTER(layout.BinaryC)()
            error = interface.get_metadata(handle, ctypes.addressof(first), len(mapped), ctypes.byref(answer))
            if error or not answer:
                raise corrupt(decoder.name, f"libQnnSystem refuses it with error {error}")
            return decoder.decode(answer.contents)
    finally:
        del first  # the mapping cannot be closed while something points into it


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
