"""Looking a wish up in an index, and taking what was found. Whoever calls shows and decides."""

from __future__ import annotations

import difflib
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qnn.bundle.manifest import Manifest
from qnn.errors.index import InvalidIndex
from qnn.errors.provenance import CheckerMissing, CheckerTooOld
from qnn.errors.pull import IndexEntryFalse, NoAttestation, PublishedFileMissing
from qnn.index.document import (
    ROOT,
    IndexFile,
    IndexVariant,
    ModelIndex,
    RootIndex,
    VersionIndex,
    model_path,
    version_path,
)
from qnn.pull.bases import Base, Desk, read_document
from qnn.pull.compare import differences
from qnn.pull.fetch import any_of, obtain
from qnn.pull.resolve import resolve
from qnn.pull.unpack import unpack
from qnn.pull.wish import Choice, Verdict, Wish
from qnn.sources.protocol import Progress

if TYPE_CHECKING:
    from qnn.provenance.attestation import Attested


@dataclass(frozen=True)
class Found:
    """What the index has for a wish; `document` is None where it has not even the version."""

    wish: Wish
    choice: Choice
    document: VersionIndex | None = None


@dataclass(frozen=True)
class Trust:
    """How attestations are judged: whether one is required, whose it must be (owner/name), the roots of trust."""

    repository: str
    required: bool = False
    trusted_root: Path | None = None


@dataclass(frozen=True)
class Taken:
    """A bundle in the output folder; `attested` is who attested it, `note` why nobody was asked."""

    found: Found
    folder: Path
    attested: Attested | None
    note: str | None


def look_up(wish: Wish, base: Base, desk: Desk) -> Found:
    """What there is for a wish. Raises the index errors QF710 and QF711, and pull errors for what cannot be read."""
    versions = find_model(wish.model, base, desk)
    if isinstance(versions, Choice):
        return Found(wish, versions)
    version = wish.version or versions.latest
    known = [one.version for one in versions.versions]
    if version not in known:
        near = difflib.get_close_matches(version, known, 3, cutoff=0.3) or known[-3:]
        reason = f"{wish.model} has no version {version}"
        return Found(wish, Choice(Verdict.NO, (reason,), near=tuple(f"{wish.model}=={one}" for one in near)))
    document = read_document(base, version_path(wish.model, version), VersionIndex, desk)
    if (document.model, document.version) != (wish.model, version):
        raise InvalidIndex(
            f"the document of {wish.model} {version} speaks of {document.model} {document.version}",
            remedy="report it to whoever keeps the index",
        )
    choice = resolve(document, wish)
    if choice.file is None:
        elsewhere = tuple(
            f"{wish.model}=={one.version} has files for {wish.chip.name}"
            for one in reversed(versions.versions)
            if wish.chip.name in one.socs and one.version != version and not one.yanked
        )
        choice = replace(choice, near=(*choice.near, *elsewhere[:3]))
    return Found(wish, choice, document)


def find_model(name: str, base: Base, desk: Desk) -> ModelIndex | Choice:
    """A model's document, or the choice that says that there is no such model and which names are near."""
    try:
        return read_document(base, model_path(name), ModelIndex, desk)
    except PublishedFileMissing:
        names = [model.name for model in read_document(base, ROOT, RootIndex, desk).models]
        if name in names:
            raise
    except InvalidIndex:
        names = [model.name for model in read_document(base, ROOT, RootIndex, desk).models]
        if name in names:  # its document is damaged; the name is not to blame
            raise
    begun = [other for other in names if len(name) >= 3 and other.startswith(name)]
    near = dict.fromkeys([*begun, *difflib.get_close_matches(name, names, 3, cutoff=0.5)])
    return Choice(Verdict.NO, (f"the index has no model called {name!r:.80}",), near=tuple(near)[:5])


def document_of(name: str, version: str | None, base: Base, desk: Desk) -> VersionIndex | None:
    """The document of a version, by default the latest; None when there is no such model or version."""
    versions = find_model(name, base, desk)
    if isinstance(versions, Choice) or version not in (None, *(one.version for one in versions.versions)):
        return None
    return read_document(base, version_path(name, version or versions.latest), VersionIndex, desk)


def take_all(founds: Sequence[Found], out: Path, base: Base, desk: Desk, trust: Trust, jobs: int) -> tuple[Taken, ...]:
    """Download, check and unpack everything found, `jobs` at once; in the order given.

    When one fails, those under way are finished and the first failure is raised: pull errors QF720 to QF731, bundle
    errors QF701 to QF703, provenance errors QF740 to QF745, OSError.
    """
    stopping = _Stoppable(desk.progress)
    work = replace(desk, progress=stopping)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(_take, found, out, base, work, trust) for found in founds]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stopping.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return tuple(future.result() for future in futures)


class _Stopped(Exception):
    """Somebody pressed Ctrl-C: this download shall end."""


class _Stoppable:
    """Passes progress on, and ends a download at its next bytes once `stopped` is set."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner
        self.stopped = threading.Event()

    def advance(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
        """Raises _Stopped when it is time."""
        if self.stopped.is_set():
            raise _Stopped
        self._inner.advance(name, done_bytes, total_bytes)


def _take(found: Found, out: Path, base: Base, desk: Desk, trust: Trust) -> Taken:
    document, variant, file = found.document, found.choice.variant, found.choice.file
    assert document is not None, "only what was found is taken"
    assert variant is not None, "a file has a variant"
    assert file is not None, "only what was found is taken"
    if not file.attestations and trust.required:
        raise NoAttestation(
            f"{file.name}: the index names no attestation for it",
            remedy="take another revision, or do without --require-attestation",
        )
    with _named(obtain(file, base, desk), file.name) as archive:
        attested, note = _attested(file, archive, base, desk, trust)
        return Taken(found, unpack(archive, out, _judge(document, variant, file)), attested, note)


@contextmanager
def _named(kept: Path, name: str) -> Iterator[Path]:
    """A kept file under its own name, which messages speak of: in the cache all files are called the same."""
    with tempfile.TemporaryDirectory(prefix="qnn-forge-pull-") as scratch:
        link = Path(scratch) / name
        link.symlink_to(kept.absolute())
        yield link


def _attested(
    file: IndexFile, archive: Path, base: Base, desk: Desk, trust: Trust
) -> tuple[Attested | None, str | None]:
    if not file.attestations:
        return None, "the index names no attestation; the sha256 was checked"
    from qnn.provenance.attestation import FILE_NAME, verify  # noqa: PLC0415 - only for files that have one

    try:
        with _named(any_of(file.attestations, lambda address: base.file(address, desk)), FILE_NAME) as bundle:
            return verify(archive, bundle, repository=trust.repository, trusted_root=trust.trusted_root), None
    except (CheckerMissing, CheckerTooOld) as error:
        if trust.required:
            raise
        return None, f"the attestation was not checked: {error.message}; the sha256 was"


def _judge(document: VersionIndex, variant: IndexVariant, file: IndexFile) -> Callable[[Manifest], None]:
    def judge(manifest: Manifest) -> None:
        wrong = differences(document, variant, file, manifest)
        if wrong:
            raise IndexEntryFalse(
                f"{file.name}: its manifest says something else than the index does",
                remedy="do not use the file, and report it to whoever keeps the index",
                details=wrong,
            )

    return judge
