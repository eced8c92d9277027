from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnn.errors.base import ForgeError
from qnn.model.spec import Source, SourceKind
from qnn.sources import extract
from qnn.sources.extract import open_member
from qnn.sources.protocol import FetchedFile
from tests.sources.conftest import CONTENT, PLAIN, Bench, source

NAME = "pkg/models/det.onnx"
OTHERS = {"pkg/__init__.py": b"x = 1\n", "pkg/models/rec.onnx": b"rec", "pkg/models/Det.onnx": b"Det"}


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tar_of(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def unpacked(archive: Path, member: str) -> bytes:
    with open_member(archive, member, 'source "det"') as stream:
        return stream.read()


def refused(archive: Path, member: str = NAME) -> ForgeError:
    with pytest.raises(ForgeError) as caught:
        unpacked(archive, member)
    return caught.value


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz", "w:bz2", "w:xz"])
def test_a_member_comes_out_of_every_kind(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "archive.bin"  # told by content, not by name
    members = {**OTHERS, NAME: CONTENT}
    archive = zip_of(path, members) if mode == "zip" else tar_of(path, members, mode)
    assert unpacked(archive, NAME) == CONTENT
    assert unpacked(archive, "pkg/models/Det.onnx") == b"Det"


def test_a_tar_of_a_folder_is_asked_without_its_dot(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "a", {"./" + NAME: CONTENT})
    assert unpacked(archive, NAME) == CONTENT
    assert refused(tar_of(tmp_path / "b", {"./" + NAME: CONTENT, NAME: b""})).id == "QF313"


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_a_missing_member_names_its_neighbours(tmp_path: Path, make: Callable[[Path, dict[str, bytes]], Path]) -> None:
    archive = make(tmp_path / "a", {**OTHERS, "other/det.onnx": b"", "bad\x1bname.onnx": b""})
    error = refused(archive)
    assert error.id == "QF312"
    assert error.details[0] == "near: other/det.onnx"
    assert "near: pkg/models/Det.onnx" in error.details
    assert not any("\x1b" in line for line in error.details)
    assert refused(make(tmp_path / "b", {"pkg/__init__.py": b""})).details == (
        "the archive has 1 members, none of them an ONNX file",
    )


@pytest.mark.parametrize(
    "member",
    [
        "/etc/passwd",
        "../det.onnx",
        "pkg/../../det.onnx",
        "pkg/..",
        "pkg\\det.onnx",
        "C:/det.onnx",
        "C:det.onnx",
        "./det.onnx",
        "pkg//det.onnx",
        "pkg/",
        "",
        "a\0b",
        "a\nb",
    ],
)
@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_names_that_leave_the_folder_are_refused_even_if_they_are_there(
    tmp_path: Path, make: Callable[[Path, dict[str, bytes]], Path], member: str
) -> None:
    archive = make(tmp_path / "a", {member.replace("\0", "") or "x": CONTENT})
    assert refused(archive, member).id == "QF313"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_tar_members_that_are_no_files_are_refused(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo(NAME)
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    assert refused(path).id == "QF313"


@pytest.mark.parametrize("unix_type", [0o120000, 0o040000, 0o020000, 0o010000])
def test_zip_members_that_are_no_files_are_refused(tmp_path: Path, unix_type: int) -> None:
    path = tmp_path / "a"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo(NAME)
        info.external_attr = (unix_type | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    error = refused(path)
    assert error.id == "QF313"
    assert "link" in error.message


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = tmp_path / "zip"
    with zipfile.ZipFile(twice, "w") as archive:
        archive.writestr(NAME, b"harmless")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(NAME, b"other")
    assert refused(twice).id == "QF313"
    tar = tmp_path / "tar"
    with tarfile.open(tar, "w") as opened:
        for content in (b"harmless", b"other"):
            info = tarfile.TarInfo(NAME)
            info.size = len(content)
            opened.addfile(info, io.BytesIO(content))
    assert refused(tar).id == "QF313"


def test_encrypted_zips_are_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a", {NAME: CONTENT})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    error = refused(path)
    assert error.id == "QF313"
    assert "encrypted" in error.message


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.6])
def test_archives_cut_short_are_damaged(tmp_path: Path, mode: str, keep: float) -> None:
    noise = os.urandom(20000)
    archive = tmp_path / "a"
    _ = zip_of(archive, {NAME: noise}) if mode == "zip" else tar_of(archive, {NAME: noise}, mode)
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * keep)])
    assert refused(archive).id == "QF314"


@pytest.mark.parametrize("mode", ["zip", "w:gz", "w:bz2", "w:xz"])
def test_a_flipped_bit_is_damage(tmp_path: Path, mode: str) -> None:
    noise = os.urandom(20000)
    archive = tmp_path / "a"
    _ = zip_of(archive, {NAME: noise}) if mode == "zip" else tar_of(archive, {NAME: noise}, mode)
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 4
    archive.write_bytes(data)
    assert refused(archive).id == "QF314"


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"<html>", CONTENT, gzip.compress(b"a lone file"), bz2.compress(b""), lzma.compress(b"x")]
)
def test_what_is_no_archive_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(content)
    assert refused(path).id == "QF314"


def test_a_zip_that_lies_about_a_size_is_caught_by_counting(bench: Bench) -> None:
    bomb = bytes(1 << 20)
    path = zip_of(bench.model / "a.zip", {NAME: bomb})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(signature) + offset, 100)
    path.write_bytes(data)
    with pytest.raises(ForgeError) as caught:
        bench.fetch(source(SourceKind.LOCAL, "a.zip", NAME, bytes(100)))
    assert caught.value.id == "QF314"  # zipfile stops at the claimed size, and the checksum is another
    assert bench.left() == []


@pytest.mark.parametrize("mode", ["zip", "w:gz"])
def test_bombs_stop_at_the_pinned_size_and_at_the_bound(bench: Bench, mode: str) -> None:
    bomb = bytes(3 << 20)
    path = bench.model / "a.zip"
    _ = zip_of(path, {NAME: bomb}) if mode == "zip" else tar_of(path, {NAME: bomb}, mode)
    for wanted, policy in (
        (source(SourceKind.LOCAL, "a.zip", NAME, bytes(100)), PLAIN),
        (source(SourceKind.LOCAL, "a.zip", NAME, None), replace(PLAIN, unpinned_limit=1 << 20)),
    ):
        with pytest.raises(ForgeError) as caught:
            bench.fetch(wanted, policy)
        assert caught.value.id == "QF315"
        assert bench.left() == []


def test_a_tar_may_not_hide_its_member_behind_endless_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "_MOST_UNPACKED", 1 << 20)
    archive = tar_of(tmp_path / "a", {"filler": bytes(2 << 20), NAME: CONTENT}, "w:gz")
    assert refused(archive).id == "QF315"


def test_a_tar_header_of_absurd_size_is_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.XHDTYPE, 1 << 40
    path = tmp_path / "a"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    error = refused(path)
    assert error.id == "QF314"
    assert "an extended header of 1099511627776 bytes" in error.message


NAMES = st.one_of(
    st.text(min_size=1, max_size=30),
    st.lists(st.sampled_from(["..", ".", "", "a", "b.onnx", "C:", "~", "\\", "a\\b", "\0", "con"]), max_size=5).map(
        "/".join
    ),
    st.sampled_from(["/etc/x", "//x", "../x", "a/../../x", "..\\x", "\\\\host\\x", "C:\\x", "a" * 300, "é/ü.onnx"]),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, kind=st.sampled_from(["zip", "tar"]))
def test_no_member_name_ever_writes_outside_the_folder(
    tmp_path_factory: pytest.TempPathFactory, name: str, kind: str
) -> None:
    bench = Bench(tmp_path_factory.mktemp("names"))
    path = bench.model / "archive"
    try:
        _ = zip_of(path, {name: CONTENT}) if kind == "zip" else tar_of(path, {name: CONTENT})
    except (ValueError, IndexError):
        return  # not even an archive can hold that name
    with tarfile.open(path) if kind == "tar" else zipfile.ZipFile(path) as made:
        stored = (made.getnames() if isinstance(made, tarfile.TarFile) else made.namelist())[0]
    before = everything(bench)
    for asked in sorted({name, stored}):
        wanted = source(SourceKind.LOCAL, "archive", asked)
        error_id, fetched = attempt(bench, wanted)
        assert error_id in (None, "QF312", "QF313", "QF317")
        assert bench.left() == ([fetched.path.name] if fetched else [])
        if fetched is not None:
            assert fetched.path.parent == bench.output
            assert fetched.path.read_bytes() == CONTENT
            fetched.path.unlink()
    assert everything(bench) == before


def attempt(bench: Bench, wanted: Source) -> tuple[str | None, FetchedFile | None]:
    """The error's id, or the file."""
    try:
        return None, bench.fetch(wanted)
    except ForgeError as error:
        return error.id, None


def everything(bench: Bench) -> set[str]:
    """Every file of the test's folder."""
    return {str(path) for path in bench.model.parent.rglob("*") if path.is_file()}
