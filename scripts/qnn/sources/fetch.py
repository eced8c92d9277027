"""From a source to a verified file in a folder. The only way into the network for sources."""

from __future__ import annotations

import hashlib
import importlib
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from qnn.errors.sources import ContentMismatch, MemberTooBig, NotTheFile, PathEscapes, SourceError
from qnn.model.spec import Source, SourceKind
from qnn.sources.local import local_file
from qnn.sources.protocol import FetchedFile, Fetcher, Order, Policy, Progress, Silent, archive_member, describe
from qnn.sources.shelf import Shelf, Slot

# Imported when first needed: a build that has all its files needs none of them.
_FETCHERS: Mapping[SourceKind, tuple[str, str]] = {
    SourceKind.PYPI: ("qnn.sources.pypi", "PypiFetcher"),
    SourceKind.HUGGINGFACE: ("qnn.sources.hub", "HubFetcher"),
    SourceKind.URL: ("qnn.sources.https", "HttpsFetcher"),
    SourceKind.GITHUB: ("qnn.sources.github", "GithubFetcher"),
}
_CHUNK = 1 << 20
_LONGEST_NAME = 200  # bytes; file systems allow 255, and others add suffixes
_POINTER = b"version https://git-lfs.github.com/spec/"


def fetch(
    source: Source,
    folder: Path,
    downloads: Path,
    *,
    model_folder: Path,
    progress: Progress | None = None,
    policy: Policy | None = None,
) -> FetchedFile:
    """Put the source's file into `folder` (existing, empty) under its own base name, verified while it is written.

    `downloads` is the shared folder of downloads; `model_folder` is where `local` paths start. With a pinned sha256
    the file may come from any earlier download of the same content; without one the address is asked.

    Raises a SourceError (QF3xx) without a place, which the caller knows; OSError for faults of this machine, as a
    full disk. After any exception `folder` is as empty as before.
    """
    policy = policy or Policy()
    if source.kind is SourceKind.LOCAL:
        origin = _Origin(local_file(source, model_folder), source.member)
        return _deliver(origin, source, folder / output_name(source), policy)
    fetcher, shelf = _fetcher(source.kind), Shelf(downloads)
    slot = shelf.slot(fetcher.address(source))
    return _Errand(source, folder / output_name(source), shelf, policy, progress or Silent()).run(fetcher, slot)


def _fetcher(kind: SourceKind) -> Fetcher:
    module, name = _FETCHERS[kind]
    fetcher: Fetcher = getattr(importlib.import_module(module), name)()
    return fetcher


def output_name(source: Source) -> str:
    """The name a source's file gets: the base name of its member, or of its address. Raises PathEscapes (QF317)."""
    if source.member is not None:
        path = source.member
    elif source.kind is SourceKind.URL:
        after_host = source.locator.partition("://")[2].partition("/")[2]
        path = urllib.parse.unquote(after_host.partition("?")[0])
    else:
        path = source.locator
    name = path.rpartition("/")[2] or source.name
    if (
        name in (".", "..")
        or "/" in name
        or "\\" in name
        or not name.isprintable()
        or len(name.encode()) > _LONGEST_NAME
    ):
        raise PathEscapes(
            f"{describe(source)}: {name[:80]!r} cannot be the name of a file",
            remedy="use an address or `file` that ends in a plain file name",
        )
    return name


@dataclass(frozen=True)
class _Origin:
    """A file on this machine, and the member wanted from it (None: the file itself)."""

    path: Path
    member: str | None


@dataclass(frozen=True)
class _Errand:
    """One fetch of something that is downloaded."""

    source: Source
    target: Path
    shelf: Shelf
    policy: Policy
    progress: Progress

    def run(self, fetcher: Fetcher, slot: Slot) -> FetchedFile:
        source, member = self.source, archive_member(self.source)
        with self.shelf.expecting(source.sha256) if source.sha256 else nullcontext():
            fetched = self._from_elsewhere(slot)
            if fetched is None:
                with self.shelf.locked(slot):
                    fetched = self._from_slot(slot, member) or self._from_network(fetcher, slot, member)
                self.shelf.remember(fetched.sha256, slot, member)
        return fetched

    def _from_elsewhere(self, own: Slot) -> FetchedFile | None:
        """The pinned content from another address's download, if there is a good one."""
        known = self.shelf.known(self.source.sha256) if self.source.sha256 else None
        if known is None or known.slot == own:
            return None
        with self.shelf.locked(known.slot):
            return self._from_slot(known.slot, known.member)

    def _from_slot(self, slot: Slot, member: str | None) -> FetchedFile | None:
        """The pinned content from a complete download. A damaged download is removed."""
        found = slot.find()
        if found is None:
            return None
        if self.source.sha256 is not None:
            try:
                return _deliver(_Origin(found.path, member), self.source, self.target, self.policy)
            except SourceError:
                pass  # damaged here, or changed at its address: the fetcher finds out which
        if not found.intact():
            slot.drop()
        return None

    def _from_network(self, fetcher: Fetcher, slot: Slot, member: str | None) -> FetchedFile:
        found = fetcher.obtain(Order(self.source, slot, self.policy, self.progress))
        return _deliver(_Origin(found.path, member), self.source, self.target, self.policy)


def _deliver(origin: _Origin, source: Source, target: Path, policy: Policy) -> FetchedFile:
    """Copy the wanted bytes to `target`, counting and hashing them; nothing is left of what fails."""
    try:
        with _opened(origin, source) as stream, target.open("xb") as output:
            fetched = _copy(stream, output, source, policy, target)
        _check_kind(source, target)
        return fetched
    except FileExistsError:
        raise  # somebody else's file is not ours to remove
    except BaseException:
        target.unlink(missing_ok=True)
        raise


@contextmanager
def _opened(origin: _Origin, source: Source) -> Iterator[IO[bytes]]:
    if origin.member is None:
        with origin.path.open("rb") as stream:
            yield stream
    else:
        from qnn.sources.extract import open_member  # noqa: PLC0415 - a build with nothing to unpack needs no zip, tar, xz

        with open_member(origin.path, origin.member, describe(source)) as stream:
            yield stream


def _copy(stream: IO[bytes], output: IO[bytes], source: Source, policy: Policy, target: Path) -> FetchedFile:
    limit = policy.unpinned_limit if source.size is None else source.size
    digest, count = hashlib.sha256(), 0
    while chunk := stream.read(_CHUNK):
        count += len(chunk)
        if count > limit:
            raise _too_big(source, limit)
        digest.update(chunk)
        output.write(chunk)
    sha256 = digest.hexdigest()
    if sha256 != (source.sha256 or sha256) or count != (count if source.size is None else source.size):
        output.flush()
        raise ContentMismatch(
            f"{describe(source)}: this is not the file that model.yaml pins",
            remedy="find out why it changed; run qnn-forge pin if the new file is wanted",
            details=(
                f"expected sha256 {source.sha256 or '(not pinned)'}, {_bytes(source.size)}",
                f"actual sha256   {sha256}, {_bytes(count)}",
                *_hint(target),
            ),
        )
    return FetchedFile(target, sha256, count)


def _too_big(source: Source, limit: int) -> SourceError:
    if archive_member(source) is not None:
        return MemberTooBig(
            f"{describe(source)}: {source.member!r} unpacks to more than the {limit} bytes that are accepted",
            remedy="run qnn-forge pin (with --max-gb N beyond the bound) if the bigger file is wanted",
        )
    return ContentMismatch(
        f"{describe(source)}: the file has more than the {limit} bytes that are accepted",
        remedy="run qnn-forge pin (with --max-gb N beyond the bound) if the bigger file is wanted",
        details=(f"expected {_bytes(source.size)}", f"actual   more than {limit} bytes"),
    )


def _check_kind(source: Source, target: Path) -> None:
    """Before a pin exists, nothing else tells a model from a page about it."""
    if source.sha256 is None and (hint := _hint(target)):
        raise NotTheFile(f"{describe(source)}: {hint[0]}", remedy="use the address of the download itself")


def _hint(target: Path) -> tuple[str, ...]:
    """What a file obviously is, if it is not what anybody wants."""
    with target.open("rb") as stream:
        head = stream.read(512)
    if not head:
        return ("what came is empty",)
    if head.startswith(_POINTER):
        return ("what came is a Git LFS pointer, not the file it points to",)
    page = head.lstrip().lower().startswith((b"<!doctype html", b"<html"))
    if page and target.suffix.lower() not in ("", ".html", ".htm"):
        return ("what came is a web page",)
    return ()


def _bytes(count: int | None) -> str:
    return "size not pinned" if count is None else f"{count} bytes"
