"""What is wanted of a library, whatever its format."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from pathlib import Path

from qnn.libs.elf import read_elf
from qnn.libs.pe import MAGIC as PE_MAGIC
from qnn.libs.pe import read_pe
from qnn.libs.raw import Bytes, ImageError

# e_machine and the COFF machine, as far as QAIRT has them.
_ELF_MACHINES = {183: "aarch64", 62: "x86_64", 164: "hexagon"}
_PE_MACHINES = {0xAA64: "aarch64", 0x8664: "x86_64"}
# As in v2.51.0.260929181845: version and time of build. What stands before and after differs.
_BUILD = re.compile(rb"v(\d{1,2}\.\d{1,3}\.\d{1,3}\.\d{12})(?!\d)")
# In the version resource of a DLL: the key in UTF-16, padding, and the value.
_PRODUCT = re.compile("ProductVersion\0".encode("utf-16-le") + rb"(?:\0\0)*((?:[0-9.]\0){15,40})\0\0")


@dataclass(frozen=True)
class Image:
    """A library's facts.

    `format` is ``elf`` or ``pe``; `machine` aarch64, x86_64, hexagon or a number; `hexagon` the Hexagon version (v75)
    of a library for it; `own_name` SONAME or the name in the export directory; `alignment` the least alignment of the
    LOAD segments in bytes (None for PE); `builds` every QAIRT build id in it, sorted, as v2.51.0.260929181845.
    """

    format: str
    machine: str
    bits: int
    hexagon: str | None
    own_name: str | None
    needed: tuple[str, ...]
    alignment: int | None
    builds: tuple[str, ...]


def read_image(path: Path) -> Image:
    """Read a library's headers and build ids. Raises ImageError unless it is a whole ELF or PE image."""
    with path.open("rb") as stream:
        if path.stat().st_size == 0:
            raise ImageError("it is empty")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return image(data)


def image(data: Bytes) -> Image:
    """The same from bytes."""
    builds = build_ids(data)
    if data[:2] == PE_MAGIC:
        dll = read_pe(data)
        machine = _PE_MACHINES.get(dll.machine, f"{dll.machine:#x}")
        return Image("pe", machine, 64, None, dll.name, dll.needed, None, builds)
    lib = read_elf(data)
    machine = _ELF_MACHINES.get(lib.machine, f"{lib.machine:#x}")
    # The low byte of e_flags is the version in hexadecimal digits: 0x75 is v75.
    hexagon = f"v{lib.flags & 0xFF:x}" if machine == "hexagon" else None
    return Image("elf", machine, lib.bits, hexagon, lib.soname, lib.needed, lib.alignment, builds)


def build_ids(data: Bytes) -> tuple[str, ...]:
    """QAIRT build ids in a library: text in any of them, and the product version of a DLL."""
    found = {match.group(1).decode() for match in _BUILD.finditer(data)}
    for match in _PRODUCT.finditer(data):
        value = match.group(1).decode("utf-16-le")
        if _BUILD.fullmatch(f"v{value}".encode()):
            found.add(value)
    return tuple(f"v{build}" for build in sorted(found))
