"""What kind of file is this? Pure functions over its first bytes: a wrong file is named before vendor code sees it.

The header of a context binary is not documented. Measured with QAIRT 2.48 to 2.51: four 32-bit big-endian words
(2, 3, 0, 1), then three 64-bit little-endian numbers: bytes of metadata, where the backend's blob begins, bytes of the
blob. The blob is the end of the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

HEAD_BYTES = 512
_HEADER = struct.Struct(">4I")
_EXTENT = struct.Struct("<3Q")
_MAGIC = (2, 3)


class FileKind(Enum):
    """What a file looks like; the value completes "this is …"."""

    CONTEXT = "a QNN context binary"
    EMPTY = "an empty file"
    ZIP = "a zip archive"
    ELF = "a shared library or program (ELF)"
    TAR = "a tar archive"
    GZIP = "a gzip-compressed file"
    ZSTD = "a zstd-compressed file"
    ONNX = "an ONNX model"
    LFS = "a Git LFS pointer, not the file it stands for"
    TEXT = "a text file"
    UNKNOWN = "a file of an unknown kind"


@dataclass(frozen=True)
class Extent:
    """Where a context binary's parts lie, in bytes from the start of the file."""

    metadata_size: int
    blob_offset: int
    blob_size: int

    @property
    def end(self) -> int:
        """The smallest file size that holds everything."""
        return self.blob_offset + self.blob_size


def sniff(head: bytes) -> FileKind:
    """The kind of a file from its first HEAD_BYTES bytes (fewer when the file is shorter)."""
    if not head:
        return FileKind.EMPTY
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    for test, kind in _TESTS:
        if test(head):
            return kind
    return FileKind.UNKNOWN


def sniff_file(path: Path) -> FileKind:
    """The kind of a file; raises OSError when it cannot be read."""
    with path.open("rb") as stream:
        return sniff(stream.read(HEAD_BYTES))


def extent(head: bytes) -> Extent | None:
    """The header's own statement of where things lie; None when `head` is too short or not of a context binary."""
    if len(head) < _HEADER.size + _EXTENT.size or _HEADER.unpack_from(head)[:2] != _MAGIC:
        return None
    return Extent(*_EXTENT.unpack_from(head, _HEADER.size))


_MAGICS = (
    (b"PK\x03\x04", FileKind.ZIP),
    (b"PK\x05\x06", FileKind.ZIP),
    (b"\x7fELF", FileKind.ELF),
    (b"\x1f\x8b", FileKind.GZIP),
    (b"\x28\xb5\x2f\xfd", FileKind.ZSTD),
    (b"version https://git-lfs.github.com/spec/", FileKind.LFS),
)


def _looks_like_onnx(head: bytes) -> bool:
    """Whether the bytes begin as ModelProto does: field 1 (ir_version, varint), then a field tag of ModelProto.

    Serialisers write fields in order, so the first byte is 0x08; later tags are of fields 2 to 8, 14, 20 and 25.
    """
    if len(head) < 3 or head[0] != 0x08 or not 1 <= head[1] <= 0x40:
        return False
    return head[2] in {0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72, 0xA2, 0xCA}


def _looks_like_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # not just a character cut at the end
            return False
        text = head[: error.start].decode("utf-8")
    return all(character.isprintable() or character in "\t\r\n\f" for character in text)


def _looks_like_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _looks_like_context(head: bytes) -> bool:
    # A file cut inside the magic is still recognised, to be called cut short rather than unknown.
    return struct.pack(">2I", *_MAGIC).startswith(head[:8]) and len(head) >= 4


_TESTS = (
    (_looks_like_tar, FileKind.TAR),
    (_looks_like_context, FileKind.CONTEXT),
    (_looks_like_onnx, FileKind.ONNX),
    (_looks_like_text, FileKind.TEXT),
)
