"""Reading tars that come from elsewhere: plain files below a folder, or nothing."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath

_MAX_BYTES = 256 << 30
_MAX_MEMBERS = 100_000
_CHUNK = 1 << 20


class UnsafeTarError(Exception):
    """Why a tar cannot be extracted, as the end of a sentence that begins with its name."""


def extract_files(archive: Path, folder: Path, mode: str) -> None:
    """Extract into the empty `folder`; `mode` as tarfile.open has it ("r:" or "r:gz").

    Every member is checked before it is written. Raises UnsafeTarError for anything but plain files at least one
    folder deep (links, devices, absolute paths, ``..``, backslashes), for two files of one name, and for more than
    256 GiB or 100,000 files; tarfile's and zlib's own errors for what is truncated or no tar; OSError.
    """
    total = 0
    with tarfile.open(archive, mode) as packed:  # type: ignore[call-overload]
        for count, member in enumerate(packed, 1):
            total += member.size
            if count > _MAX_MEMBERS or total > _MAX_BYTES:
                raise UnsafeTarError("holds more than anything of ours")
            target = folder.joinpath(*_parts(member))
            target.parent.mkdir(parents=True, exist_ok=True)
            source = packed.extractfile(member)
            try:
                with target.open("xb") as out:
                    shutil.copyfileobj(source, out, _CHUNK)
            except FileExistsError:
                raise UnsafeTarError(f"holds two files of the name {member.name!r}") from None


def _parts(member: tarfile.TarInfo) -> tuple[str, ...]:
    name, parts = member.name, PurePosixPath(member.name).parts
    if not member.isfile():
        raise UnsafeTarError(f"holds {name!r}, which is not a plain file")
    if name.startswith("/") or ".." in parts or len(parts) < 2 or "\\" in name or "\0" in name:
        raise UnsafeTarError(f"holds {name!r}, which would leave its folder")
    return parts
