"""What an ELF file says of itself: machine, needed libraries, alignment. Pure; reads bytes it does not trust.

Written for this one purpose: a library that reads all of ELF is a dependency of every user, and is built for files
that are well-formed. Layouts are those of the System V ABI (Elf32_Ehdr, Elf64_Phdr and so on).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from qnn.libs.raw import Bytes, ImageError, text_at

MAGIC = b"\x7fELF"
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _SONAME = 1, 5, 14
_MOST_HEADERS, _MOST_ENTRIES = 256, 4096


@dataclass(frozen=True)
class Elf:
    """`machine` is e_machine, `flags` e_flags, `bits` 32 or 64, `alignment` the least p_align of all LOAD segments."""

    machine: int
    flags: int
    bits: int
    soname: str | None
    needed: tuple[str, ...]
    alignment: int


@dataclass(frozen=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int
    alignment: int


@dataclass(frozen=True)
class _Layout:
    bits: int
    header: str  # from e_type on
    segment: str
    entry: str


_LAYOUTS = {1: _Layout(32, "<HHIIIIIHHH", "<IIIIIIII", "<II"), 2: _Layout(64, "<HHIQQQIHHH", "<IIQQQQQQ", "<QQ")}


def read_elf(data: Bytes) -> Elf:
    """Read the headers of a little-endian ELF file. Raises ImageError for anything that is not a whole one."""
    if data[:4] != MAGIC or len(data) < 64:
        raise ImageError("it is not an ELF file")
    layout = _LAYOUTS.get(data[4])
    if layout is None or data[5] != 1:
        raise ImageError("it is an ELF file of an unknown class or byte order")
    _, machine, _, _, table, _, flags, _, size, count = struct.unpack_from(layout.header, data, 16)
    if size != struct.calcsize(layout.segment) or count > _MOST_HEADERS or table + size * count > len(data):
        raise ImageError("its program headers are not where its header says")
    segments = [_segment(layout, data, table + size * index) for index in range(count)]
    loads = [segment for segment in segments if segment.kind == _LOAD]
    if not loads or any(segment.offset + segment.size > len(data) for segment in segments if segment.kind == _LOAD):
        raise ImageError("it is cut off: a segment ends behind the end of the file")
    soname, needed = _dynamic(layout, data, segments, loads)
    return Elf(machine, flags, layout.bits, soname, needed, min(segment.alignment for segment in loads))


def _segment(layout: _Layout, data: Bytes, at: int) -> _Segment:
    fields = struct.unpack_from(layout.segment, data, at)
    if layout.bits == 32:
        kind, offset, address, _, size, _, _, alignment = fields
    else:
        kind, _, offset, address, _, size, _, alignment = fields
    return _Segment(kind, offset, address, size, alignment)


def _dynamic(
    layout: _Layout, data: Bytes, segments: list[_Segment], loads: list[_Segment]
) -> tuple[str | None, tuple[str, ...]]:
    table = next((segment for segment in segments if segment.kind == _DYNAMIC), None)
    if table is None:
        return None, ()
    width = struct.calcsize(layout.entry)
    count = table.size // width
    if count > _MOST_ENTRIES or table.offset + table.size > len(data):
        raise ImageError("its dynamic section is not where its header says")
    entries: list[tuple[int, int]] = []
    for index in range(count):
        tag, value = struct.unpack_from(layout.entry, data, table.offset + width * index)
        if tag == 0:
            break
        entries.append((tag, value))
    if not any(tag in (_NEEDED, _SONAME) for tag, _ in entries):
        return None, ()
    strings = _file_offset(next((value for tag, value in entries if tag == _STRTAB), -1), loads)
    names = [(tag, text_at(data, strings + value)) for tag, value in entries if tag in (_NEEDED, _SONAME)]
    soname = next((name for tag, name in names if tag == _SONAME), None)
    return soname, tuple(name for tag, name in names if tag == _NEEDED)


def _file_offset(address: int, loads: list[_Segment]) -> int:
    for segment in loads:
        if segment.address <= address < segment.address + segment.size:
            return segment.offset + address - segment.address
    raise ImageError("its string table is outside of its segments")
