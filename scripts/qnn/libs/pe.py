"""What a Windows DLL says of itself: machine, its own name, imported libraries. Pure; reads bytes it does not trust.

Layouts are those of Microsoft's PE format description (COFF header, optional header PE32+, import directories).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from qnn.libs.raw import Bytes, ImageError, text_at

MAGIC = b"MZ"
_EXPORTS, _IMPORTS, _DELAYED = 0, 1, 13
_MOST_SECTIONS, _MOST_IMPORTS = 96, 1024
_OPTIONAL_64 = 0x20B


@dataclass(frozen=True)
class Pe:
    """`machine` is the COFF header's; `name` stands in the export directory; `needed` are all imports, also delayed."""

    machine: int
    name: str | None
    needed: tuple[str, ...]


@dataclass(frozen=True)
class _Section:
    address: int
    offset: int
    size: int


def read_pe(data: Bytes) -> Pe:
    """Read the headers of a 64-bit PE image. Raises ImageError for anything that is not a whole one."""
    if data[:2] != MAGIC or len(data) < 0x40:
        raise ImageError("it is not a PE image")
    (start,) = struct.unpack_from("<I", data, 0x3C)
    if data[start : start + 4] != b"PE\0\0" or start + 24 + 112 > len(data):
        raise ImageError("it is not a PE image")
    machine, sections, _, _, _, optional = struct.unpack_from("<HHIIIH", data, start + 4)
    (magic,) = struct.unpack_from("<H", data, start + 24)
    if magic != _OPTIONAL_64:
        raise ImageError("it is not a 64-bit PE image")
    (directories,) = struct.unpack_from("<I", data, start + 24 + 108)
    table = start + 24 + optional
    if sections > _MOST_SECTIONS or directories > 16 or table + 40 * sections > len(data):
        raise ImageError("its sections are not where its header says")
    found = [_section(data, table + 40 * index) for index in range(sections)]
    if any(section.offset + section.size > len(data) for section in found):
        raise ImageError("it is cut off: a section ends behind the end of the file")
    roots = [struct.unpack_from("<I", data, start + 24 + 112 + 8 * index)[0] for index in range(directories)]
    roots += [0] * (16 - len(roots))
    needed = (
        *_imports(data, found, roots[_IMPORTS], step=20, name_at=12),
        *_imports(data, found, roots[_DELAYED], step=32, name_at=4),
    )
    return Pe(machine, _own_name(data, found, roots[_EXPORTS]), tuple(dict.fromkeys(needed)))


def _section(data: Bytes, at: int) -> _Section:
    _, address, size, offset = struct.unpack_from("<IIII", data, at + 8)
    return _Section(address, offset, size)


def _offset(sections: list[_Section], address: int) -> int:
    for section in sections:
        if section.address <= address < section.address + section.size:
            return section.offset + address - section.address
    raise ImageError("a table of its is outside of its sections")


def _imports(data: Bytes, sections: list[_Section], root: int, *, step: int, name_at: int) -> Iterator[str]:
    if root == 0:
        return
    at = _offset(sections, root)
    for index in range(_MOST_IMPORTS):
        entry = data[at + step * index : at + step * (index + 1)]
        if len(entry) < step:
            raise ImageError("its imports run over the end of the file")
        (name,) = struct.unpack_from("<I", entry, name_at)
        if name == 0:
            return
        yield text_at(data, _offset(sections, name))
    raise ImageError("its imports do not end")


def _own_name(data: Bytes, sections: list[_Section], root: int) -> str | None:
    if root == 0:
        return None
    at = _offset(sections, root)
    if at + 40 > len(data):
        raise ImageError("its exports run over the end of the file")
    return text_at(data, _offset(sections, struct.unpack_from("<I", data, at + 12)[0]))
