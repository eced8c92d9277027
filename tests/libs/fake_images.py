"""The smallest libraries that have headers worth reading: ELF and PE, made byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence

AARCH64, X86_64, HEXAGON = 183, 62, 164
PE_ARM64, PE_AMD64 = 0xAA64, 0x8664
BUILD = "v2.50.0.260828221209"


def elf(
    *,
    machine: int = AARCH64,
    flags: int = 0,
    soname: str | None = None,
    needed: Sequence[str] = (),
    alignment: int = 16384,
    text: bytes = BUILD.encode(),
) -> bytes:
    """A shared library of one LOAD segment; 32 bits for Hexagon, else 64."""
    narrow = machine == HEXAGON
    header, segment, entry = ("<HHIIIIIHHH", "<IIIIIIII", "<II") if narrow else ("<HHIQQQIHHH", "<IIQQQQQQ", "<QQ")
    start = 16 + struct.calcsize(header) + 6
    strings, entries = b"\0", []
    for tag, name in [*((1, name) for name in needed), *([(14, soname)] if soname else [])]:
        entries.append((tag, len(strings)))
        strings += name.encode() + b"\0"
    at_strings = start + 2 * struct.calcsize(segment)
    at_dynamic = at_strings + len(strings)
    entries += [(5, at_strings), (0, 0)]
    dynamic = b"".join(struct.pack(entry, *pair) for pair in entries)
    end = at_dynamic + len(dynamic) + len(text)

    def program(kind: int, offset: int, size: int, align: int) -> bytes:
        if narrow:
            return struct.pack(segment, kind, offset, offset, offset, size, size, 5, align)
        return struct.pack(segment, kind, 5, offset, offset, offset, size, size, align)

    ident = b"\x7fELF" + bytes([1 if narrow else 2, 1, 1]) + bytes(9)
    fields = struct.pack(header, 3, machine, 1, 0, start, 0, flags, start, struct.calcsize(segment), 2) + bytes(6)
    programs = program(1, 0, end, alignment) + program(2, at_dynamic, len(dynamic), 8)
    return ident + fields + programs + strings + dynamic + text


def skel(number: int, flags: int | None = None, text: bytes = BUILD.encode()) -> bytes:
    """A Skel for Hexagon vNN; `flags` to lie about it."""
    return elf(
        machine=HEXAGON,
        flags=int(str(number), 16) if flags is None else flags,
        soname=f"libQnnHtpV{number}Skel.so",
        needed=("libc++.so.1", "libc++abi.so.1"),
        alignment=4096,
        text=text,
    )


def pe(
    *,
    machine: int = PE_ARM64,
    name: str | None = "QnnHtp.dll",
    needed: Sequence[str] = ("KERNEL32.dll",),
    delayed: Sequence[str] = (),
    text: bytes = BUILD.encode(),
) -> bytes:
    """A 64-bit DLL of one section with export, import and delayed import directories."""
    base, first = 0x1000, 0x200
    body = bytearray()

    def put(data: bytes) -> int:
        body.extend(data)
        return base + len(body) - len(data)

    imports = [struct.pack("<IIIII", 1, 0, 0, put(one.encode() + b"\0"), 1) for one in needed]
    at_imports = put(b"".join(imports) + bytes(20))
    lazy = [struct.pack("<IIIIIIII", 1, put(one.encode() + b"\0"), 0, 0, 0, 0, 0, 0) for one in delayed]
    at_delayed = put(b"".join(lazy) + bytes(32)) if lazy else 0
    at_exports = 0
    if name is not None:
        at_name = put(name.encode() + b"\0")
        at_exports = put(struct.pack("<IIII", 0, 0, 0, at_name) + bytes(24))
    put(text)
    directories = [(0, 0)] * 16
    directories[0], directories[1], directories[13] = (at_exports, 40), (at_imports, 20), (at_delayed, 32)
    optional = struct.pack("<H", 0x20B) + bytes(106) + struct.pack("<I", 16)
    optional += b"".join(struct.pack("<II", *pair) for pair in directories)
    coff = struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, len(optional), 0x2022)
    section = b".rdata\0\0" + struct.pack("<IIII", len(body), base, len(body), first) + bytes(16)
    dos = b"MZ" + bytes(58) + struct.pack("<I", 0x40)
    return (dos + b"PE\0\0" + coff + optional + section).ljust(first, b"\0") + bytes(body)
