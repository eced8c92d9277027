"""Bundles arrive in the output folder whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qnn.build.install import install
from qnn.errors.system import DiskFull
from qnn.store import Entry, StageKey, Store


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    """A bundle in a store."""

    def produce(folder: Path) -> None:
        (folder / "toy" / "golden").mkdir(parents=True)
        (folder / "toy" / "net.bin").write_bytes(b"binary")
        (folder / "toy" / "golden" / "x.raw").write_bytes(b"golden")
        (folder / "toy.tar.gz").write_bytes(b"archive")

    with Store(tmp_path / "store") as store:
        return store.make(StageKey("bundle", "c"), produce).entry


def test_folder_and_archive_arrive_and_stay_when_they_are_right(entry: Entry, tmp_path: Path) -> None:
    folder, archive = install(entry, "toy", tmp_path / "dist")
    assert (folder / "golden" / "x.raw").read_bytes() == b"golden"
    before = archive.stat().st_ino, folder.stat().st_ino
    install(entry, "toy", tmp_path / "dist")
    assert (archive.stat().st_ino, folder.stat().st_ino) == before
    assert not (folder / "net.bin").samefile(entry.folder / "toy" / "net.bin")  # an edit must not reach the store


@pytest.mark.parametrize("harm", ["edited", "extra", "missing"])
def test_what_is_not_the_bundle_is_replaced(entry: Entry, tmp_path: Path, harm: str) -> None:
    folder, archive = install(entry, "toy", tmp_path / "dist")
    if harm == "edited":
        archive.write_bytes(b"archivE")
    elif harm == "extra":
        (folder / "mine.txt").write_text("mine")
    else:
        (folder / "net.bin").unlink()
    install(entry, "toy", tmp_path / "dist")
    assert archive.read_bytes() == b"archive"
    assert sorted(path.name for path in folder.rglob("*")) == ["golden", "net.bin", "x.raw"]


def test_what_a_killed_build_left_is_swept(entry: Entry, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    (out / ".partial-toy" / "half").mkdir(parents=True)
    (out / ".partial-toy.tar.gz").write_bytes(b"half")
    install(entry, "toy", out)
    assert sorted(path.name for path in out.iterdir()) == [".lock", "toy", "toy.tar.gz"]


def test_full_disk_keeps_the_old_bundle(entry: Entry, small_disk: Path) -> None:
    out = small_disk / "dist"
    install(entry, "toy", out)
    (out / "toy.tar.gz").write_bytes(b"older")
    filler = small_disk / "filler"
    free = os.statvfs(small_disk).f_bavail * 4096
    filler.write_bytes(bytes(free))
    with pytest.raises(DiskFull):
        install(entry, "toy", out)
    assert (out / "toy.tar.gz").read_bytes() == b"older"
