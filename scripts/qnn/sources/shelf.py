"""The downloads folder: complete downloads, unfinished ones, and which content was seen where.

Layout under the root::

    artefacts/<key>/body, body.json     a complete download and its record; <key> is a digest of the address
    artefacts/<key>/partial, …          an unfinished one and what is needed to go on with it
    known/<sha256>.json                 which artefact, and which member of it, has that content
    locks/                              one file lock per artefact and per content

The folder is shared: every writer of an artefact holds its lock, and complete files are put in place by a rename.
Everything in it can be deleted at any time and will be downloaded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

_KEY_DIGITS = 40
_KEY = re.compile(rf"[0-9a-f]{{{_KEY_DIGITS}}}")


@dataclass(frozen=True)
class Shelved:
    """A complete download: its file, size in bytes, sha256 (hex), and the server's strong ETag if it gave one."""

    path: Path
    size: int
    sha256: str
    etag: str | None = None

    def intact(self) -> bool:
        """Whether the file still has the content that was recorded. Reads all of it."""
        return self.path.stat().st_size == self.size and _sha256(self.path) == self.sha256


@dataclass(frozen=True)
class Resumable:
    """An unfinished download that may be continued: bytes there already, and the ETag that names the same content."""

    size: int
    etag: str


@dataclass(frozen=True)
class Known:
    """Where a content was seen: the artefact's slot, and the member of it (None: the artefact itself)."""

    slot: Slot
    member: str | None


@dataclass(frozen=True)
class Slot:
    """The place of one artefact. Use it only while holding its lock."""

    folder: Path

    @property
    def partial(self) -> Path:
        """File for an unfinished download."""
        return self.folder / "partial"

    def find(self) -> Shelved | None:
        """The complete download, if there is one of the recorded size; its content is not read."""
        body = self.folder / "body"
        try:
            record = json.loads((self.folder / "body.json").read_text(encoding="utf-8"))
            etag = record["etag"] if isinstance(record["etag"], str) else None
            found = Shelved(body, int(record["size"]), str(record["sha256"]), etag)
            return found if body.stat().st_size == found.size else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def resumable(self) -> Resumable | None:
        """The unfinished download, if it can be continued."""
        try:
            record = json.loads((self.folder / "partial.json").read_text(encoding="utf-8"))
            size = self.partial.stat().st_size
            return Resumable(size, str(record["etag"])) if size > 0 else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def start(self, etag: str | None) -> None:
        """Forget an unfinished download and note the ETag under which a new one starts (None: cannot be resumed)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.forget()
        if etag is not None:
            _write_json(self.folder / "partial.json", {"etag": etag})

    def forget(self) -> None:
        """Remove an unfinished download."""
        (self.folder / "partial.json").unlink(missing_ok=True)
        self.partial.unlink(missing_ok=True)

    def keep(self, file: Path, etag: str | None = None) -> Shelved:
        """Make `file` (on the same file system) the complete download; it is moved. A former one is replaced."""
        self.folder.mkdir(parents=True, exist_ok=True)
        shelved = Shelved(self.folder / "body", file.stat().st_size, _sha256(file), etag)
        record = {name: value for name, value in asdict(shelved).items() if name != "path"}
        (self.folder / "body.json").unlink(missing_ok=True)  # a kill in between leaves no record, not a wrong one
        os.replace(file, shelved.path)
        _write_json(self.folder / "body.json", record)
        self.forget()
        return shelved

    def rescue(self, sha256: str, size: int) -> Shelved | None:
        """The download if all of it is there and only its record is missing, as after a kill at the very end.

        Only for who knows what it must be: the content is read and compared.
        """
        for file in (self.partial, self.folder / "body"):
            if file.is_file() and file.stat().st_size == size and _sha256(file) == sha256:
                return self.keep(file)
        return None

    def drop(self) -> None:
        """Remove everything about this artefact."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def workshop(self) -> Iterator[Path]:
        """An empty folder beside the artefact, on the same file system; gone afterwards."""
        folder = self.folder / "work"
        shutil.rmtree(folder, ignore_errors=True)  # left by a killed process; the lock is ours
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Shelf:
    """A downloads folder. Safe for parallel threads and processes through `locked`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def slot(self, address: str) -> Slot:
        """The place for the download at `address`."""
        return Slot(self._root / "artefacts" / hashlib.sha256(address.encode()).hexdigest()[:_KEY_DIGITS])

    @contextmanager
    def locked(self, slot: Slot) -> Iterator[None]:
        """Hold an artefact's lock; waits for whoever is downloading it."""
        with self._lock(slot.folder.name):
            yield

    @contextmanager
    def expecting(self, sha256: str) -> Iterator[None]:
        """Hold a content's lock, so that two addresses of the same content are not fetched at once.

        Take it before an artefact's lock, never after.
        """
        with self._lock(f"content-{sha256}"):
            yield

    def known(self, sha256: str) -> Known | None:
        """Where this content was seen last, if its artefact is still there."""
        try:
            record = json.loads(self._known(sha256).read_text(encoding="utf-8"))
            key, member = str(record["artefact"]), record["member"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        if not _KEY.fullmatch(key) or not isinstance(member, str | None):
            return None
        slot = Slot(self._root / "artefacts" / key)
        return Known(slot, member) if slot.find() is not None else None

    def remember(self, sha256: str, slot: Slot, member: str | None) -> None:
        """Note that this content is in that artefact."""
        path = self._known(sha256)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_json(path, {"artefact": slot.folder.name, "member": member})

    def _known(self, sha256: str) -> Path:
        return self._root / "known" / f"{sha256}.json"

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        from filelock import FileLock  # noqa: PLC0415

        folder = self._root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{name}.lock"):
            yield


def _write_json(path: Path, record: dict[str, object]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    temporary.write_text(json.dumps(record, sort_keys=True), encoding="utf-8")
    os.replace(temporary, path)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
