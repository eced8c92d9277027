"""Publishing into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from qnn.errors.publish import OccupiedRepository, PublishedMeanwhile, ReadBackDiffers
from qnn.publish.folder import FolderTarget
from qnn.publish.target import Release
from tests.publish.conftest import UNIT, Recorder, content_of

Make = Callable[..., Release]
A, B = "toy-1.0-a.tar.gz", "toy-1.0-b.tar.gz"


@pytest.fixture
def target(tmp_path: Path) -> FolderTarget:
    return FolderTarget(tmp_path / "public")


def seen(tmp_path: Path) -> list[str]:
    """What a file server would show: nothing that begins with a dot."""
    return sorted(
        path.relative_to(tmp_path / "public").as_posix()
        for path in (tmp_path / "public").rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(tmp_path / "public").parts)
    )


def test_one_rename_makes_it_visible(target: FolderTarget, release: Make, tmp_path: Path) -> None:
    wanted = release(A, B)
    target.stage(wanted, Recorder())
    assert seen(tmp_path) == []
    assert {file.name for file in target.look(UNIT).waiting[1]} == {A, B, "SHA256SUMS"}
    target.reveal(wanted)
    assert seen(tmp_path) == ["toy/1.0/r1/SHA256SUMS", f"toy/1.0/r1/{A}", f"toy/1.0/r1/{B}"]
    [found] = target.look(UNIT).published
    assert {(file.name, file.sha256) for file in found.files} == {(file.name, file.sha256) for file in wanted.files}
    assert target.look(UNIT).waiting == {}


def test_the_day_is_that_of_the_checksums(target: FolderTarget, release: Make, tmp_path: Path) -> None:
    target.stage(release(A), Recorder())
    target.reveal(release(A))
    os.utime(tmp_path / "public/toy/1.0/r1/SHA256SUMS", (86_400 * 365, 86_400 * 365))
    assert target.look(UNIT).published[0].date == "1971-01-01"


def test_a_second_try_copies_only_what_is_missing(target: FolderTarget, release: Make, tmp_path: Path) -> None:
    partial = tmp_path / "public/toy/1.0/.r1.partial"
    partial.mkdir(parents=True)
    (partial / A).write_bytes(content_of(A))
    (partial / B).write_bytes(content_of(B)[:100])
    (partial / "stranger").write_bytes(b"x")
    (partial / f".{B}.copy").write_bytes(content_of(B)[:10])
    recorder = Recorder()
    target.stage(release(A, B), recorder)
    target.reveal(release(A, B))
    assert (recorder.kept_names, recorder.sent_names) == ([A], ["SHA256SUMS", B])
    assert seen(tmp_path) == ["toy/1.0/r1/SHA256SUMS", f"toy/1.0/r1/{A}", f"toy/1.0/r1/{B}"]
    assert (tmp_path / "public/toy/1.0/r1" / B).read_bytes() == content_of(B)


def test_a_revision_that_is_there_is_not_replaced(target: FolderTarget, release: Make, tmp_path: Path) -> None:
    target.stage(release(A), Recorder())
    target.reveal(release(A))
    other = release(A, seed="new")
    target.stage(other, Recorder())
    with pytest.raises(PublishedMeanwhile):
        target.reveal(other)
    assert (tmp_path / "public/toy/1.0/r1" / A).read_bytes() == content_of(A)


def test_a_file_that_changes_while_it_is_copied_is_not_shown(
    target: FolderTarget, release: Make, tmp_path: Path
) -> None:
    wanted = release(A)
    wanted.files[0].path.write_bytes(b"changed after it was hashed")
    with pytest.raises(ReadBackDiffers) as caught:
        target.stage(wanted, Recorder())
    assert caught.value.details == (A,)
    assert seen(tmp_path) == []


def test_what_is_no_revision_is_not_looked_at_and_a_link_in_one_is_refused(
    target: FolderTarget, release: Make, tmp_path: Path
) -> None:
    target.stage(release(A), Recorder())
    target.reveal(release(A))
    home = tmp_path / "public/toy/1.0"
    (home / "notes").mkdir()
    (home / "r7").write_text("a file")
    assert [one.revision for one in target.look(UNIT).published] == [1]
    (home / "r1" / "link").symlink_to(A)
    with pytest.raises(OccupiedRepository, match="link"):
        target.look(UNIT)


def test_addresses(target: FolderTarget, tmp_path: Path) -> None:
    assert target.address(UNIT, 2, A) == f"file://{tmp_path}/public/toy/1.0/r2/{A}"
    served = FolderTarget(tmp_path, "https://models.example/")
    assert served.address(UNIT, 2, A) == f"https://models.example/toy/1.0/r2/{A}"


def test_a_full_disk_leaves_nothing_visible(release: Make, small_disk: Path) -> None:
    wanted = release(A)
    wanted.files[0].path.write_bytes(os.urandom(1 << 20))
    with pytest.raises(OSError, match="No space left"):
        FolderTarget(small_disk).stage(wanted, Recorder())
    assert not list(small_disk.rglob("r1"))
