"""From an index entry to its archive on this machine: any of its addresses, checked, downloaded once.

The cache has a place for each sha256, so it does not matter where the bytes came from, and a download that broke off
goes on from there at the next try. Two pulls of one file wait for each other, across processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from qnn.errors.base import ForgeError
from qnn.errors.pull import NotThePublishedFile, PublishedFileMissing
from qnn.errors.sources import SourceError
from qnn.index.document import IndexFile
from qnn.model.spec import Source, SourceKind
from qnn.pull.bases import Base, Desk
from qnn.pull.faults import translated
from qnn.sources.protocol import Order

_SAME_FILE = "do not use it; try again, and if it stays, report it to whoever published it"


def obtain(file: IndexFile, base: Base, desk: Desk) -> Path:
    """A file of exactly the entry's size and sha256: one in a folder of this machine where it is, else in the cache.

    The addresses are tried in their order. Raises QF720 to QF726; OSError for faults of this machine.
    """
    slot = desk.shelf.slot(f"sha256:{file.sha256}")
    with desk.shelf.locked(slot):
        kept = slot.find() or slot.rescue(file.sha256, file.size)
        if kept is not None and kept.sha256 == file.sha256 and kept.size == file.size and kept.intact():
            return kept.path
        if kept is not None:
            slot.drop()  # damaged on this disk
        return any_of(file.urls, lambda address: _from(base.place(address), file, desk))


def any_of(addresses: Sequence[str], bring: Callable[[str], Path]) -> Path:
    """What `bring` gives for the first address that works.

    When none does, the first one's error is raised, with the others' as details.
    """
    failures = []
    for address in addresses:
        try:
            return bring(address)
        except ForgeError as error:
            failures.append(error)
    first, *others = failures
    first.details = (*first.details, *(f"also tried: {other.message}" for other in others))
    raise first


def _from(place: str | Path, file: IndexFile, desk: Desk) -> Path:
    return _checked_file(place, file) if isinstance(place, Path) else _download(place, file, desk)


def _download(url: str, file: IndexFile, desk: Desk) -> Path:
    from qnn.sources.https import download  # noqa: PLC0415 - httpx

    source = Source(file.name, SourceKind.URL, url, None, file.sha256, file.size)
    slot = desk.shelf.slot(f"sha256:{file.sha256}")
    try:
        came = download(Order(source, slot, desk.policy, desk.progress), url)
    except SourceError as error:
        raise translated(error, source, f"{file.name} ({url})") from None
    if (came.sha256, came.size) != (file.sha256, file.size):
        slot.drop()
        raise _other(file, url, came.sha256, came.size)
    return came.path


def _checked_file(path: Path, file: IndexFile) -> Path:
    if not path.is_file():
        raise PublishedFileMissing(f"{file.name}: there is no {path}", remedy="check the folder given with --from")
    size = path.stat().st_size
    if size != file.size:
        raise _other(file, str(path), "(not read)", size)
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if sha256 != file.sha256:
        raise _other(file, str(path), sha256, size)
    return path


def _other(file: IndexFile, where: str, sha256: str, size: int) -> NotThePublishedFile:
    return NotThePublishedFile(
        f"{file.name} ({where}): this is not the file that the index lists",
        remedy=_SAME_FILE,
        details=(f"expected sha256 {file.sha256}, {file.size} bytes", f"actual sha256   {sha256}, {size} bytes"),
    )
