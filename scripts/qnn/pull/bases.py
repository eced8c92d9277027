"""Where an index is: an https address or a folder; what its documents say, and where its files are."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from qnn.errors.index import InvalidIndex
from qnn.errors.pull import DownloadRedirected, PublishedFileMissing
from qnn.errors.sources import SourceError, SourceNotFound
from qnn.index.document import ChipsIndex, ModelIndex, RootIndex, VersionIndex, from_json
from qnn.model.spec import Source, SourceKind
from qnn.pull.faults import translated
from qnn.sources.protocol import Order, Policy, Progress, printable
from qnn.sources.shelf import Shelf

DEFAULT = "https://raw.githubusercontent.com/qnn-forge/qnn-forge/index"
# Most bytes of an index document or an attestation. 1,000 models are half a megabyte (tests/index/test_size.py).
_MOST_BYTES = 32 << 20
_D = TypeVar("_D", RootIndex, ChipsIndex, ModelIndex, VersionIndex)


@dataclass(frozen=True)
class Desk:
    """What downloading needs: the cache, the terms of network use, who wants to see progress."""

    shelf: Shelf
    policy: Policy
    progress: Progress


class Base(Protocol):
    """The base address of an index."""

    def file(self, address: str, desk: Desk) -> Path:
        """A small file of the index, bounded but with no checksum; `address` as the index has addresses.

        Raises PublishedFileMissing (QF720) and the other pull errors for what keeps it from coming.
        """

    def place(self, address: str) -> str | Path:
        """Where a file is: an https address, or a path on this machine. Raises DownloadRedirected (QF724)."""


@dataclass(frozen=True)
class HttpBase:
    """An index on a web server. `url` has no slash at its end."""

    url: str

    def place(self, address: str) -> str:
        """The absolute address; nothing of this machine is ever read because a server says so."""
        if "://" not in address:
            if address.startswith(("/", "file:")):
                raise DownloadRedirected(
                    f"{printable(address)!r:.200} in the index of {self.url} is no address on the web",
                    remedy="report it to whoever keeps the index",
                )
            return f"{self.url}/{address}"
        if urlsplit(address).scheme not in ("https", "http"):
            raise DownloadRedirected(
                f"{printable(address)!r:.200} in the index of {self.url} is not an https address",
                remedy="report it to whoever keeps the index",
            )
        return address

    def file(self, address: str, desk: Desk) -> Path:
        """From the cache if the server says that it has not changed, else downloaded."""
        return _download(self.place(address), desk)


@dataclass(frozen=True)
class FolderBase:
    """An index in a folder of this machine."""

    folder: Path

    def place(self, address: str) -> str | Path:
        """A path, relative to the folder, or an address on the web."""
        split = urlsplit(address)
        if split.scheme in ("https", "http"):
            return address
        if split.scheme == "file":
            return Path(unquote(split.path))
        return self.folder / address

    def file(self, address: str, desk: Desk) -> Path:
        """The file itself; a download where the address is one."""
        place = self.place(address)
        if isinstance(place, str):
            return _download(place, desk)
        if not place.is_file():
            raise PublishedFileMissing(f"there is no {place}", remedy="check the folder given with --from")
        return place


def open_base(text: str | None) -> Base:
    """The base of `--from`, else of QNN_FORGE_INDEX, else the public one."""
    chosen = text or os.environ.get("QNN_FORGE_INDEX", "").strip() or DEFAULT
    if "://" in chosen and not chosen.startswith("file://"):
        return HttpBase(chosen.rstrip("/"))
    return FolderBase(Path(unquote(urlsplit(chosen).path)) if chosen.startswith("file://") else Path(chosen))


def read_document(base: Base, path: str, kind: type[_D], desk: Desk) -> _D:
    """A document of the index.

    Raises PublishedFileMissing (QF720) where there is none, InvalidIndex (QF710), NewerIndex (QF711), and the other
    pull errors.
    """
    file = base.file(path, desk)
    where = str(base.place(path))
    if file.stat().st_size > _MOST_BYTES:
        raise InvalidIndex(f"{where} has more than {_MOST_BYTES} bytes", remedy="check the address given with --from")
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidIndex(f"{where} is not text", remedy="check the address given with --from") from None
    return from_json(text, kind, where)


def _download(url: str, desk: Desk) -> Path:
    from qnn.sources.https import download  # noqa: PLC0415 - httpx, which an index in a folder does not need

    source = Source("index", SourceKind.URL, url, None, None, None)
    policy = replace(desk.policy, unpinned_limit=_MOST_BYTES)
    slot = desk.shelf.slot(f"url:{url}")
    with desk.shelf.locked(slot):
        found = slot.find()
        if found is not None and not found.intact():
            slot.drop()
        try:
            return download(Order(source, slot, policy, desk.progress), url).path
        except SourceNotFound as error:
            slot.drop()  # it was there once; what was kept of it must not come back
            raise translated(error, source, url) from None
        except SourceError as error:
            raise translated(error, source, url) from None
