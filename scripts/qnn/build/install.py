"""Puts finished bundles into the output folder: whole or not at all, and left alone when they are there already."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from qnn.errors.system import from_os_error
from qnn.store import Entry, StoredFile, file_digest

ARCHIVE_SUFFIX = ".tar.gz"
_PARTIAL = ".partial-"


def install(bundle: Entry, name: str, out: Path) -> tuple[Path, Path]:
    """Copy a bundle entry to ``out/<name>/`` and ``out/<name>.tar.gz``; returns both paths.

    What is there with the same bytes is kept as it is; anything else of that name is replaced by a rename. Raises
    DiskFull (QF901) or NotWritable (QF902).
    """
    folder, archive = out / name, out / f"{name}{ARCHIVE_SUFFIX}"
    packed = bundle.file(archive.name)
    loose = {file.name.removeprefix(f"{name}/"): file for file in bundle.files if file is not packed}
    try:
        if not (_same_file(archive, packed) and _same_folder(folder, loose)):
            out.mkdir(parents=True, exist_ok=True)
            with _alone(out):
                _replace_file(bundle.folder / packed.name, archive)
                _replace_folder(bundle.folder / name, folder)
    except OSError as error:
        raise from_os_error(error) from None
    return folder, archive


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One process at a time writes to the folder; what a killed one left half-written is removed first."""
    descriptor = os.open(out / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for left in out.glob(f"{_PARTIAL}*"):
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()
        yield
    finally:
        os.close(descriptor)


def _same_file(path: Path, wanted: StoredFile) -> bool:
    return path.is_file() and path.stat().st_size == wanted.size and file_digest(path) == wanted.sha256


def _same_folder(folder: Path, wanted: dict[str, StoredFile]) -> bool:
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    if present != set(wanted):
        return False
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter's lock
        return all(pool.map(lambda name: _same_file(folder / name, wanted[name]), wanted))


def _replace_file(source: Path, target: Path) -> None:
    partial = target.with_name(f"{_PARTIAL}{target.name}")
    shutil.copyfile(source, partial)
    os.replace(partial, target)


def _replace_folder(source: Path, target: Path) -> None:
    partial = target.with_name(f"{_PARTIAL}{target.name}")
    shutil.copytree(source, partial)
    if target.exists():
        os.rename(target, target.with_name(f"{_PARTIAL}old-{target.name}"))
    os.rename(partial, target)
    shutil.rmtree(target.with_name(f"{_PARTIAL}old-{target.name}"), ignore_errors=True)
