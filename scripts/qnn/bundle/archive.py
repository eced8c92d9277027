"""One deterministic archive a bundle: same files, same bytes; and extracting one without trusting it."""

from __future__ import annotations

import gzip
import struct
import tarfile
import zlib
from pathlib import Path
from typing import IO

from qnn.errors.bundles import UnsafeArchive
from qnn.tar import UnsafeTarError, extract_files

# Level 1 by measurement: a context binary that shrinks at all shrinks as much at level 1 as at level 6 (19 %).
_LEVEL = 1
# A file that would shrink by less than this is stored: compressing 220 MB of fp16 weights takes 7 s and saves 8 %.
_WORTH_IT = 0.9
# Many small samples rather than few large ones: the first 64 KB of a context binary describe its graph and shrink to a
# quarter, which made 12 large samples of MiniLM's 45 MB promise 0.87 where the whole file comes to 0.92.
_PROBE_BYTES = 16 << 10
_PROBE_EVERY = 1 << 20
_FEWEST_PROBES = 16
_CHUNK = 1 << 20
# Seconds since the epoch for every member, 1980-01-01, the earliest a zip can hold: archives carry no clock.
_EPOCH = 315_532_800


def write_archive(folder: Path, root: str, target: Path) -> None:
    """Pack all files of `folder` as ``root/…`` into the gzipped tar `target`, in name order with fixed metadata.

    Every file is a gzip member of its own, so that each can be compressed or stored; gzip, tar and every library read
    the members as one stream.
    """
    with target.open("wb") as out:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            size = path.stat().st_size
            header = tarfile.TarInfo(f"{root}/{path.relative_to(folder).as_posix()}")
            header.size, header.mtime, header.mode = size, _EPOCH, 0o644
            packer = _Member(out, _LEVEL if _shrinks(path, size) else 0)
            packer.write(header.tobuf(tarfile.PAX_FORMAT))
            with path.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    packer.write(chunk)
            packer.write(bytes(-size % tarfile.BLOCKSIZE))
            packer.close()
        end = _Member(out, _LEVEL)
        end.write(bytes(2 * tarfile.BLOCKSIZE))
        end.close()


class _Member:
    """One gzip member: header without name or time, data, trailer."""

    _HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # RFC 1952: deflate, no flags, no time, unknown system

    def __init__(self, out: IO[bytes], level: int) -> None:
        self._out = out
        self._packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._crc = 0
        self._size = 0
        out.write(self._HEADER)

    def write(self, data: bytes) -> None:
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        self._out.write(self._packer.compress(data))

    def close(self) -> None:
        self._out.write(self._packer.flush())
        self._out.write(struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))


def _shrinks(path: Path, size: int) -> bool:
    """Whether compression is worth its time, by a sample spread evenly over the file."""
    taken = squeezed = 0
    step = min(_PROBE_EVERY, max(_PROBE_BYTES, size // _FEWEST_PROBES))
    with path.open("rb") as stream:
        for offset in range(0, size, step):
            stream.seek(offset)
            probe = stream.read(_PROBE_BYTES)
            taken += len(probe)
            squeezed += len(zlib.compress(probe, _LEVEL))
    return taken > 0 and squeezed < _WORTH_IT * taken


def extract_archive(archive: Path, folder: Path) -> Path:
    """Extract a bundle archive into the empty `folder`; returns the bundle's own folder inside it.

    Raises UnsafeArchive (QF703) for anything but plain files below one top folder, and for a truncated or foreign file.
    """
    try:
        extract_files(archive, folder, "r:gz")
    except UnsafeTarError as error:
        raise UnsafeArchive(f"{archive.name} {error}", remedy=_AGAIN) from None
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnsafeArchive(f"{archive.name} is truncated or not a bundle archive: {error}", remedy=_AGAIN) from None
    roots = sorted(folder.iterdir())
    if len(roots) != 1:
        raise UnsafeArchive(f"{archive.name} holds {len(roots)} top folders, not one", remedy=_AGAIN)
    return roots[0]


_AGAIN = "download the archive again; if it is the same, report it to whoever published it"
