"""Telling Qualcomm's libraries from a user's own files, so that nobody publishes them by accident. Pure.

The wheel's licence (Qualcomm_LICENSE.pdf) allows distribution in object code only as part of an application, not on
its own; so whatever publishes asks here first.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

# How much of a file's beginning `is_qairt_library` can make use of, in bytes.
HEAD_BYTES = 64 << 10

_NAMES = re.compile(
    r"""
    # libraries and catalogues: Linux, Android and DSP, then Windows
    lib(?:qnn|snpe|genie|htpprepare|hta|platformvalidator).*\.(?:so|cat|a)(?:\.\d+)*
    | (?:qnn|snpe|genie|htpprepare|platformvalidator).*\.(?:dll|lib|pdb|exe|cat)
    # tools
    | qnn-(?:net-run|context-binary-\w+|platform-validator|throughput-net-run|profile-viewer)(?:\.exe)?
    | snpe-[\w-]+(?:\.exe)? | genie-t2t-run(?:\.exe)?
    # packages of them: ours, and those they come in
    | qnn-libs-.*\.tar\.gz | onnxruntime_qnn-.*\.whl | (?:qnn|snpe|qairt)-(?:runtime|release).*\.(?:aar|zip)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_WHEEL_FOLDER = "onnxruntime_qnn/"
_ELF, _PE, _ZIP, _GZIP = b"\x7fELF", b"MZ", b"PK\x03\x04", b"\x1f\x8b"
_BLOCK = 512
_ZIP_HEADER = 30


def is_qairt_library(name: str, head: bytes) -> bool:
    """Whether a file must not be published as it may be part of QAIRT: a library, a tool, or a package of them.

    `name` is a file name or a path with either kind of slash; `head` the file's first bytes (HEAD_BYTES of them, less
    where the file is shorter). Yes for the names QAIRT uses; for any ELF or PE image whatever its name, as nothing that
    qnn-forge makes holds native code and what is in a renamed library's head does not say whose it is; and for a zip
    or gzipped tar whose first members, as far as `head` goes, have such names. It cannot see deeper into an archive:
    ask for each member of one that is published.
    """
    if _NAMES.fullmatch(_base(name)) or _is_native(head):
        return True
    return any(_NAMES.fullmatch(_base(member)) or member.startswith(_WHEEL_FOLDER) for member in _members(head))


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _is_native(head: bytes) -> bool:
    if head.startswith(_ELF):
        return True
    if not head.startswith(_PE) or len(head) < 0x40:
        return False
    (offset,) = struct.unpack_from("<I", head, 0x3C)
    return bool(head[offset : offset + 4] == b"PE\0\0")


def _members(head: bytes) -> Iterator[str]:
    if head.startswith(_ZIP):
        yield from _zip_names(head)
    elif head.startswith(_GZIP):
        yield from _tar_names(_inflated(head))


def _zip_names(head: bytes) -> Iterator[str]:
    """Names in the local headers that can be found, whether or not the sizes in them are filled in."""
    at = head.find(_ZIP)
    while at >= 0 and at + _ZIP_HEADER <= len(head):
        (length,) = struct.unpack_from("<H", head, at + 26)
        yield head[at + _ZIP_HEADER : at + _ZIP_HEADER + length].decode("utf-8", "replace")
        at = head.find(_ZIP, at + len(_ZIP))


def _inflated(head: bytes) -> bytes:
    """What the gzip members in `head` unpack to, at most 16 times its usual length; damage ends it, without a word."""
    out, rest = bytearray(), head
    while rest.startswith(_GZIP) and len(out) < 16 * HEAD_BYTES:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            out += unpacker.decompress(rest, 16 * HEAD_BYTES)
        except zlib.error:
            break
        rest = unpacker.unused_data
    return bytes(out)


def _tar_names(data: bytes) -> Iterator[str]:
    at = 0
    while at + _BLOCK <= len(data):
        header = data[at : at + _BLOCK]
        size = header[124:135].strip(b"\0 ")
        if header[257:262] != b"ustar" or not re.fullmatch(rb"[0-7]+", size):
            return
        yield header[:100].partition(b"\0")[0].decode("utf-8", "replace")
        at += _BLOCK + -(-int(size, 8) // _BLOCK) * _BLOCK
