"""The content-addressed store: stage outputs by digest, whole or absent, safe for parallel processes.

Layout under the root::

    objects/ab/abcdef…/entry.json   what is here: stage, digest, sha256 and size of every file
    objects/ab/abcdef…/files/…      the stage's output
    code/   locks/   tmp/           digests of source files; one lock a digest; outputs in the making

An output is written in tmp/, synced, then renamed into objects/: a kill at any moment leaves a usable store.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qnn.errors.system import StoreInUse, from_os_error
from qnn.store.digest import KnownDigests, StageKey, file_digest


@dataclass(frozen=True)
class StoredFile:
    """One file of an entry: path relative to the entry's folder, sha256 (hex), size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Entry:
    """One stage output, complete and read-only. `folder` holds the files."""

    stage: str
    digest: str
    folder: Path
    files: tuple[StoredFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def file(self, name: str) -> StoredFile:
        """The file of that relative name; raises KeyError when there is none."""
        for file in self.files:
            if file.name == name:
                return file
        raise KeyError(name)


@dataclass(frozen=True)
class Made:
    """An entry, and whether it was there already."""

    entry: Entry
    reused: bool


class Store:
    """A store rooted in one folder. Use as a context manager: inside it, nobody can prune.

    Raises DiskFull (QF901) or NotWritable (QF902) from every operation that writes.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()  # children work in other folders
        self.known = KnownDigests()
        self._trusted: dict[str, Entry] = {}
        self._guard = threading.Lock()
        self._thread_locks: dict[str, threading.Lock] = {}
        self._use: int | None = None

    def __enter__(self) -> Store:
        try:
            for name in ("objects", "locks", "tmp", "code"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            self._use = os.open(self.root / "use.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise from_os_error(error) from None
        if _try_lock(self._use, fcntl.LOCK_EX):
            self._sweep_temporary()  # nobody else is here, so what is in tmp/ was left by a killed build
        fcntl.flock(self._use, fcntl.LOCK_SH)
        return self

    def __exit__(self, *_: object) -> None:
        if self._use is not None:
            os.close(self._use)
            self._use = None

    @property
    def code_memo(self) -> Path:
        """Folder for qnn.store.code.code_digest."""
        return self.root / "code"

    def get(self, key: StageKey) -> Entry | None:
        """The entry for a key, or None. Every file's size and sha256 are checked once per process.

        A damaged entry is moved out of the way and None is returned, so that it is made again.
        """
        digest = key.digest
        known = self._trusted.get(digest)
        if known is not None:
            return known
        entry = self._read(digest)
        if entry is None:
            return None
        if damage(entry):
            self._discard(digest)
            return None
        self._trust(entry)
        return entry

    def make(self, key: StageKey, produce: Callable[[Path], None]) -> Made:
        """The entry for a key, made by `produce(folder)` if it is not there; one maker at a time per digest.

        Another thread or process making the same entry is waited for and its result reused. When `produce` raises,
        nothing is kept and the exception goes on (OSError as DiskFull or another QF9xx).
        """
        digest = key.digest
        found = self.get(key)
        if found is not None:
            return Made(found, True)
        with self._locked(digest):
            found = self.get(key)
            if found is not None:
                return Made(found, True)
            return Made(self._produce(key, digest, produce), False)

    def entries(self) -> Iterator[Entry]:
        """Every readable entry, by digest, without checking its files."""
        for path in sorted((self.root / "objects").glob("??/*/entry.json")):
            entry = self._read(path.parent.name)
            if entry is not None:
                yield entry

    def last_used(self, digest: str) -> float:
        """Seconds since the epoch when an entry was last made or reused."""
        return (self._object(digest) / "entry.json").stat().st_mtime

    def remove(self, digest: str) -> None:
        """Remove one entry. Only inside `exclusive()`."""
        self._discard(digest)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else uses the store inside; raises StoreInUse (QF903) when somebody does."""
        assert self._use is not None
        if not _try_lock(self._use, fcntl.LOCK_EX):
            fcntl.flock(self._use, fcntl.LOCK_SH)
            raise StoreInUse(f"a build is using {self.root}", remedy="wait for it to end, then run the command again")
        try:
            yield
        finally:
            fcntl.flock(self._use, fcntl.LOCK_SH)

    def _produce(self, key: StageKey, digest: str, produce: Callable[[Path], None]) -> Entry:
        work = self.root / "tmp" / f"{digest[:16]}-{uuid.uuid4().hex}"
        try:
            files = work / "files"
            files.mkdir(parents=True)
            produce(files)
            record = tuple(self._record(files))
            document = {
                "stage": key.stage,
                "digest": digest,
                "code": key.code,
                "parameters": dict(key.parameters),
                "inputs": dict(key.inputs),
                "files": [{"name": file.name, "sha256": file.sha256, "size": file.size} for file in record],
            }
            (work / "entry.json").write_text(json.dumps(document, sort_keys=True, indent=1), encoding="utf-8")
            _sync_tree(work)
            target = self._object(digest)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(work, target)
            _sync(target.parent)
        except OSError as error:
            raise from_os_error(error) from None
        finally:
            shutil.rmtree(work, ignore_errors=True)
        entry = Entry(key.stage, digest, self._object(digest) / "files", record)
        self._trust(entry)
        return entry

    def _record(self, folder: Path) -> Iterator[StoredFile]:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            yield StoredFile(path.relative_to(folder).as_posix(), self.known.of(path), path.stat().st_size)

    def _object(self, digest: str) -> Path:
        return self.root / "objects" / digest[:2] / digest

    def _read(self, digest: str) -> Entry | None:
        folder = self._object(digest)
        try:
            document = json.loads((folder / "entry.json").read_text(encoding="utf-8"))
            files = tuple(StoredFile(str(f["name"]), str(f["sha256"]), int(f["size"])) for f in document["files"])
            return Entry(str(document["stage"]), digest, folder / "files", files)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            self._discard(digest)  # the record itself is damaged
            return None

    def _trust(self, entry: Entry) -> None:
        self._trusted[entry.digest] = entry
        try:
            os.utime(self._object(entry.digest) / "entry.json")
        except OSError:
            return  # only the order of pruning depends on it

    def _discard(self, digest: str) -> None:
        self._trusted.pop(digest, None)
        grave = self.root / "tmp" / f"discarded-{uuid.uuid4().hex}"
        try:
            os.rename(self._object(digest), grave)
        except FileNotFoundError:
            return
        except OSError as error:
            raise from_os_error(error) from None
        shutil.rmtree(grave, ignore_errors=True)

    def _sweep_temporary(self) -> None:
        for left in (self.root / "tmp").iterdir():
            shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def _locked(self, digest: str) -> Iterator[None]:
        with self._guard:
            thread_lock = self._thread_locks.setdefault(digest, threading.Lock())
        with thread_lock:
            try:
                descriptor = os.open(self.root / "locks" / digest, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise from_os_error(error) from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)


def damage(entry: Entry) -> list[str]:
    """What is wrong with an entry's files, one line each; empty when they are as recorded."""
    found = []
    for file in entry.files:
        path = entry.folder / file.name
        try:
            if path.stat().st_size != file.size:
                found.append(f"{file.name}: size differs")
            elif file_digest(path) != file.sha256:
                found.append(f"{file.name}: content differs")
        except OSError:
            found.append(f"{file.name}: missing or unreadable")
    return found


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
