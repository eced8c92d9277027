"""The directory of a flexible context binary (FCB): which chips a DLC holds compiled contexts for.

An FCB is a DLC, that is a stored zip (zip64) with one record ``htp.cache.<chip>.<n>`` a chip (the chip's name in lower
case), one ``htp.shared.weights.<…>`` record with the weights of all, their metadata, and ``dlc.metadata…`` (measured
with QAIRT 2.51). Its writer leaves every CRC zero, so zipfile can list it but not read it; records are read by
offset.
"""

from __future__ import annotations

import re
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_CACHE = re.compile(r"^htp\.cache\.(?P<chip>[^.]+)\.\d+$")
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_MAX_RECORDS = 4096


@dataclass(frozen=True)
class Record:
    """One stored record: where its bytes begin in the file, and how many they are."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class Dlc:
    """The directory of a DLC. `chips` are the upper-case names it holds contexts for; none: it is not an FCB."""

    records: tuple[Record, ...]
    chips: tuple[str, ...]


def read_dlc(path: Path) -> Dlc | None:
    """The directory of a DLC, in the order of the file; None when the zip is damaged or is not a DLC."""
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
            if len(entries) > _MAX_RECORDS or not any(_is_dlc_record(entry.filename) for entry in entries):
                return None
            records = tuple(
                Record(entry.filename, _data_offset(stream, entry.header_offset), entry.file_size) for entry in entries
            )
    except (zipfile.BadZipFile, struct.error):
        return None
    found = {match["chip"].upper() for record in records if (match := _CACHE.match(record.name))}
    return Dlc(records, tuple(sorted(found)))


def _is_dlc_record(name: str) -> bool:
    return name.startswith(("dlc.metadata", "htp.cache.")) or name in {"model", "model.params"}


def _data_offset(stream: BinaryIO, header_offset: int) -> int:
    stream.seek(header_offset)
    magic, name_size, extra_size = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    if magic != b"PK\x03\x04":
        raise zipfile.BadZipFile
    return int(header_offset + _LOCAL_HEADER.size + name_size + extra_size)
