"""SHA256SUMS: what `sha256sum` writes and reads, and nothing that leads out of its folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.errors.provenance import ChecksumDiffers, UnreadableChecksums
from qnn.provenance.checksums import check_file, check_folder, checksums, parse, read
from qnn.provenance.subject import Subject, subject_of

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\\\0\r\n"), min_size=1).filter(
    lambda name: name not in {".", ".."}
)
digests = st.text("0123456789abcdef", min_size=64, max_size=64)


def folder_of(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    listed = checksums(subject_of(tmp_path / name) for name in files)
    (tmp_path / "SHA256SUMS").write_text(listed)
    return tmp_path


def test_sha256sum_writes_and_reads_the_same(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, b="hello", a="two")
    text = (folder / "SHA256SUMS").read_text()
    assert text.splitlines()[1] == f"{HELLO}  b"
    written = subprocess.run(["sha256sum", "a", "b"], cwd=folder, capture_output=True, text=True, check=True)
    assert written.stdout == text
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    assert check_folder(folder) == read(folder / "SHA256SUMS")


@given(st.dictionaries(names, digests, min_size=1))
def test_what_is_written_is_read(files: dict[str, str]) -> None:
    subjects = [Subject(name, sha256) for name, sha256 in files.items()]
    assert set(parse(checksums(subjects), Path("SHA256SUMS"))) == set(subjects)
    assert checksums(reversed(subjects)) == checksums(subjects)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text, Path("SHA256SUMS"))
    except UnreadableChecksums:
        return
    assert all("/" not in one.name and one.name not in {".", ".."} for one in found)


@pytest.mark.parametrize(
    "line",
    [
        "",
        f"{HELLO}  ../b",
        f"{HELLO}  /etc/passwd",
        f"{HELLO}  ..",
        f"{HELLO}  a\\b",
        f"\\{HELLO}  a\\nb",
        f"{HELLO} b",
        f"{HELLO[:-1]}  b",
        f"{HELLO.upper()}  b",
        f"SHA256 (b) = {HELLO}",
        f"{HELLO}  b\n\n{HELLO}  c",
        f"{HELLO}  b\r",
    ],
)
def test_a_line_that_is_no_checksum_is_refused(line: str) -> None:
    with pytest.raises(UnreadableChecksums) as caught:
        parse(line + "\n", Path("SHA256SUMS"))
    assert caught.value.place is not None


def test_a_file_twice_is_refused() -> None:
    with pytest.raises(UnreadableChecksums, match="b is listed twice") as caught:
        parse(f"{HELLO}  b\n{'0' * 64}  b\n", Path("SHA256SUMS"))
    assert str(caught.value.place) == "SHA256SUMS:2"


@pytest.mark.parametrize("name", ["a/b", "..", "a\nb", "a\\b", ""])
def test_a_name_that_is_not_plain_is_not_written(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain file name"):
        checksums([Subject(name, HELLO)])


def test_a_name_twice_is_not_written() -> None:
    with pytest.raises(ValueError, match="a name twice"):
        checksums([Subject("b", HELLO), Subject("b", "0" * 64)])


def test_a_changed_file_is_found(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="two", b="hello")
    (folder / "b").write_text("hell0")
    with pytest.raises(ChecksumDiffers, match="b is not the file") as caught:
        check_folder(folder)
    assert f"listed sha256 {HELLO}" in caught.value.details


def test_a_missing_file_is_found(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="two", b="hello")
    (folder / "a").unlink()
    with pytest.raises(ChecksumDiffers, match="a is listed in SHA256SUMS and missing"):
        check_folder(folder)


def test_a_file_that_is_not_listed_is_found(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="two")
    (folder / "c").write_text("three")
    check_folder(folder)
    with pytest.raises(ChecksumDiffers, match="c is not listed"):
        check_file(folder / "c", read(folder / "SHA256SUMS"))


@pytest.mark.parametrize("raw", [None, b"\xff\xfe"])
def test_a_listing_that_cannot_be_read_is_named(tmp_path: Path, raw: bytes | None) -> None:
    if raw is not None:
        (tmp_path / "SHA256SUMS").write_bytes(raw)
    with pytest.raises(UnreadableChecksums, match=r"SHA256SUMS is (missing|not text)"):
        check_folder(tmp_path)
