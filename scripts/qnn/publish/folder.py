"""Publishing into a folder: a file server, a mounted share, a branch's work tree."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from qnn.errors.publish import OccupiedRepository, PublishedMeanwhile, ReadBackDiffers
from qnn.provenance.checksums import FILE_NAME as CHECKSUMS
from qnn.publish.notes import Story, release_notes
from qnn.publish.plan import reconcile, same
from qnn.publish.target import Limits, LocalFile, Progress, Published, Release, RemoteFile, Shelf, Unit
from qnn.store import file_digest

# A file that is being copied; a leading dot, as no published name has one.
_COPY = ".copy"


class FolderTarget:
    """``ROOT/<model>/<version>/r<revision>/<file>``; a revision is put together in a hidden folder and renamed.

    `base` is the URL under which others get at ROOT, when there is one.
    """

    name = "folder"
    limits = Limits(files=100_000, file_bytes=1 << 50)

    def __init__(self, root: Path, base: str | None = None) -> None:
        self._root = root.absolute()
        self._base = base

    def place(self, unit: Unit) -> str:
        """The unit's folder."""
        return str(self._root / unit.model / unit.version)

    def look(self, unit: Unit) -> Shelf:
        """Every r<N> as it is, and what waits hidden."""
        home = self._home(unit)
        published, waiting = [], {}
        for folder in sorted(home.iterdir()) if home.is_dir() else ():
            revision = _revision(folder.name)
            if revision is not None and folder.is_dir():
                published.append(Published(revision, _files(folder), _date(folder)))
        hidden = max((release.revision for release in published), default=0) + 1
        if (partial := self._partial(unit, hidden)).is_dir():
            waiting[hidden] = _files(partial)
        return Shelf(tuple(sorted(published, key=lambda release: release.revision)), waiting)

    def introduction(self, story: Story) -> str:
        """The notes; README.md among the documents has them too."""
        return release_notes(story)

    def stage(self, release: Release, progress: Progress) -> None:
        """Copy into the hidden folder, each file synced; then read everything back."""
        partial = self._partial(release.unit, release.revision)
        partial.mkdir(parents=True, exist_ok=True)
        with self._alone():
            for left in partial.glob(f"*{_COPY}"):
                left.unlink()
            todo = reconcile(release.files, _files(partial))
            for name in todo.drop:
                (partial / name).unlink()
            for file in todo.keep:
                progress.kept(file)
            for file in todo.send:
                _copy(file, partial)
                progress.sent(file)
            _sync(partial)
            _read_back(release, partial)

    def reveal(self, release: Release) -> None:
        """One rename."""
        final = self._home(release.unit) / f"r{release.revision}"
        with self._alone():
            if final.exists():
                raise PublishedMeanwhile(f"{final} is there already", remedy="run the same command again")
            os.rename(self._partial(release.unit, release.revision), final)
            _sync(final.parent)

    def settle(self, unit: Unit, revisions: Sequence[int]) -> None:
        """A folder needs nothing more."""

    def address(self, unit: Unit, revision: int, name: str) -> str:
        """Below the base URL, or the file's own address on this machine."""
        path = f"{unit.model}/{unit.version}/r{revision}/{name}"
        if self._base is not None:
            from urllib.parse import quote  # noqa: PLC0415 - start-up

            return f"{self._base.rstrip('/')}/{quote(path)}"
        return (self._root / path).as_uri()

    def _home(self, unit: Unit) -> Path:
        return self._root / unit.model / unit.version

    def _partial(self, unit: Unit, revision: int) -> Path:
        return self._home(unit) / f".r{revision}.partial"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One publisher at a time writes."""
        self._root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._root / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _revision(name: str) -> int | None:
    digits = name.removeprefix("r")
    return int(digits) if name.startswith("r") and digits.isascii() and digits.isdigit() else None


def _files(folder: Path) -> tuple[RemoteFile, ...]:
    """Every file of a revision, hashed as it is now."""
    found = []
    for path in sorted(folder.iterdir()):
        if not path.is_file() or path.is_symlink():
            raise OccupiedRepository(
                f"{path} is no file of a revision", remedy="move it away; published revisions are not edited"
            )
        if not path.name.endswith(_COPY):
            found.append(RemoteFile(path.name, path.stat().st_size, file_digest(path)))
    return tuple(found)


def _date(folder: Path) -> str:
    """The day the checksums, which are the last of a revision, were written."""
    mark = folder / CHECKSUMS
    moment = (mark if mark.exists() else folder).stat().st_mtime
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _copy(file: LocalFile, folder: Path) -> None:
    """Whole or not at all, so that a second try can trust what it finds."""
    partial = folder / f".{file.name}{_COPY}"
    with file.path.open("rb") as source, partial.open("wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())
    os.replace(partial, folder / file.name)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_back(release: Release, folder: Path) -> None:
    there = {file.name: file for file in _files(folder)}
    wrong = [file.name for file in release.files if file.name not in there or not same(file, there[file.name])]
    if wrong:
        raise ReadBackDiffers(
            f"{len(wrong)} file(s) in {folder} are not as they were sent",
            remedy="run the same command again; if it stays so, check the disk",
            details=wrong,
        )
