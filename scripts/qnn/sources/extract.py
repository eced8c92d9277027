"""One member out of a zip, wheel or tar, as a stream of bytes; nothing else is ever unpacked.

What an archive says about itself is not believed: the type is told by content, sizes are counted as bytes come out,
and whoever reads the stream bounds it. Nothing here writes a file or uses a member's name as a path.
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Literal, Self, TypeAlias, cast

from qnn.errors.sources import ArchiveDamaged, ArchiveUnsafe, MemberMissing, MemberTooBig
from qnn.sources.protocol import printable

# A compressed tar has to be unpacked up to the wanted member, so what precedes it is bounded too.
_MOST_UNPACKED = 16 << 30
_LONGEST_TAR_NAME_RECORD = 1 << 20  # bytes of an extended header; tarfile reads it into memory whole
_SHOWN_NAMES = 8
_CHUNK = 1 << 20
_ENCRYPTED = 0x1
_UNIX_TYPE_MASK, _UNIX_REGULAR = 0o170000, 0o100000
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,  # a compression method that zipfile does not know
    UnicodeDecodeError,
)
_Kind: TypeAlias = Literal["zip", "tar", "gz", "bz2", "xz"]
_MAGIC: tuple[tuple[int, bytes, _Kind], ...] = (
    (0, b"PK\x03\x04", "zip"),
    (0, b"\x1f\x8b", "gz"),
    (0, b"BZh", "bz2"),
    (0, b"\xfd7zXZ\x00", "xz"),
    (257, b"ustar", "tar"),
)


@contextmanager
def open_member(archive: Path, member: str, what: str) -> Iterator[IO[bytes]]:
    """The content of the archive's member of exactly that name (a leading ``./`` in a tar apart), as a stream.

    `what` names the source in messages. Raises ArchiveDamaged (QF314), MemberMissing (QF312), ArchiveUnsafe (QF313)
    and, for a tar that unpacks to more than 16 GiB, MemberTooBig (QF315); also while the stream is read, so read it
    inside the ``with``.
    """
    _check_name(member, what)
    kind = _kind(archive)
    if kind is None:
        raise ArchiveDamaged(
            f"{what}: {member!r} shall be unpacked from it, but it is no zip, wheel or tar (plain, gz, xz, bz2)",
            remedy="remove `file` if the address is the file itself, or correct the address",
        )
    try:
        with (
            _zip_member(archive, member, what) if kind == "zip" else _tar_member(archive, kind, member, what) as stream
        ):
            yield stream
    except _DAMAGE as error:
        raise _damaged(what, error) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(what, error) from None  # how gzip and bz2 say that their data is broken


def _kind(archive: Path) -> _Kind | None:
    with archive.open("rb") as stream:
        head = stream.read(512)
    return next((kind for offset, magic, kind in _MAGIC if head[offset : offset + len(magic)] == magic), None)


def _check_name(member: str, what: str) -> None:
    parts = member.split("/")
    problem = (
        "is absolute"
        if member.startswith("/")
        else "has a backslash"
        if "\\" in member
        else "has a drive letter"
        if member[1:2] == ":"
        else "has a control character"
        if not member.isprintable()
        else "has '..' or an empty part"
        if {"", ".", ".."} & set(parts)
        else None
    )
    if problem is not None:
        raise _unsafe(what, member, f"its name {problem}")


@contextmanager
def _zip_member(archive: Path, member: str, what: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(archive) as opened:
        found = [info for info in opened.infolist() if info.filename == member]
        _check_one(len(found), member, (info.filename for info in opened.infolist()), what)
        info = found[0]
        if info.flag_bits & _ENCRYPTED:
            raise _unsafe(what, member, "it is encrypted")
        unix_type = (info.external_attr >> 16) & _UNIX_TYPE_MASK
        if unix_type not in (0, _UNIX_REGULAR):
            raise _unsafe(what, member, "it is a link or another special file")
        with opened.open(info) as stream:
            yield stream


@contextmanager
def _tar_member(archive: Path, kind: _Kind, member: str, what: str) -> Iterator[IO[bytes]]:
    # Two passes, as a later member of the same name would replace this one for other tools.
    with _open_tar(archive, kind, what) as (opened, rest):
        members = [(_tar_name(info), info.isreg() and not info.issparse()) for info in opened]
        while rest.read(_CHUNK):
            pass  # the checksums of gz, bz2 and xz are at their ends, behind the last member
    regular = [is_regular for name, is_regular in members if name == member]
    _check_one(len(regular), member, (name for name, _ in members), what)
    if not regular[0]:
        raise _unsafe(what, member, "it is a link, a device or another special file")
    with _open_tar(archive, kind, what) as (opened, _):
        for info in opened:
            if _tar_name(info) == member:
                stream = opened.extractfile(info)
                assert stream is not None  # a regular file
                yield stream
                return
    raise ArchiveDamaged(f"{what}: the archive changed while it was read", remedy="run the same command again")


def _tar_name(info: tarfile.TarInfo) -> str:
    return info.name.removeprefix("./")


@contextmanager
def _open_tar(archive: Path, kind: _Kind, what: str) -> Iterator[tuple[tarfile.TarFile, _Bounded]]:
    """The tar, to be read once from front to back, and the stream it is read from."""
    with archive.open("rb") as packed, _unpacked(packed, kind) as unpacked:
        bounded = _Bounded(unpacked, _MOST_UNPACKED, what)
        with tarfile.open(fileobj=bounded, mode="r|", tarinfo=_CarefulTarInfo) as opened:
            yield opened, bounded


def _unpacked(packed: IO[bytes], kind: _Kind) -> AbstractContextManager[IO[bytes]]:
    match kind:
        case "gz":
            return cast(IO[bytes], gzip.GzipFile(fileobj=packed))
        case "bz2":
            return bz2.BZ2File(packed)
        case "xz":
            return lzma.LZMAFile(packed)
        case _:
            return packed


class _Bounded(io.RawIOBase):
    """Reads from a stream and raises MemberTooBig once more than `limit` bytes came out of it."""

    def __init__(self, stream: IO[bytes], limit: int, what: str) -> None:
        self._stream = stream
        self._left = limit
        self._what = what

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise MemberTooBig(
                f"{self._what}: the archive unpacks to more than {_MOST_UNPACKED >> 30} GiB",
                remedy="use an archive of the model alone",
            )
        return data


class _CarefulTarInfo(tarfile.TarInfo):
    """Refuses extended headers of absurd size, which tarfile would read into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        info = super().frombuf(buf, encoding, errors)
        if info.type not in (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE) and info.size > _LONGEST_TAR_NAME_RECORD:
            raise tarfile.ReadError(f"an extended header of {info.size} bytes")
        return info


def _check_one(count: int, member: str, names: Iterable[str], what: str) -> None:
    if count > 1:
        raise _unsafe(what, member, f"there are {count} members of this name")
    if count == 0:
        raise _missing(what, member, sorted(set(names)))


def _missing(what: str, member: str, names: list[str]) -> MemberMissing:
    base = member.rpartition("/")[2]
    same_base = [name for name in names if name.rpartition("/")[2] == base]
    near = list(dict.fromkeys([*same_base, *difflib.get_close_matches(member, names, n=_SHOWN_NAMES, cutoff=0.5)]))
    models = [name for name in names if name.lower().endswith((".onnx", ".ort"))]
    details = [f"near: {name}" for name in near[:_SHOWN_NAMES]]
    details += [f"ONNX file: {name}" for name in models[:_SHOWN_NAMES] if name not in near[:_SHOWN_NAMES]]
    if len(models) > _SHOWN_NAMES:
        details.append(f"… {len(models)} ONNX files in all")
    if not models:
        details.append(f"the archive has {len(names)} members, none of them an ONNX file")
    return MemberMissing(
        f"{what}: there is no {member!r} in the archive",
        remedy="give `file` one of the archive's names, exactly as it is there",
        details=[printable(line) for line in details],
    )


def _unsafe(what: str, member: str, reason: str) -> ArchiveUnsafe:
    return ArchiveUnsafe(
        f"{what}: {member!r} is not unpacked: {reason}",
        remedy="point `file` at a regular file of the archive by its plain name, or use another archive",
    )


def _damaged(what: str, error: Exception) -> ArchiveDamaged:
    return ArchiveDamaged(
        f"{what}: the archive is damaged: {printable(str(error)) or type(error).__name__}",
        remedy="report it to its publisher; if the download is to blame, the next run fetches it again",
    )
