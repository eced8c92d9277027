"""Archives: the same files are the same bytes, every tar reads them, and a hostile one writes nothing outside."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.bundle.archive import extract_archive, write_archive
from qnn.errors.bundles import UnsafeArchive


def folder_of(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


FILES = {
    "a.bin": np.random.default_rng(0).bytes(300_000),  # does not shrink: stored
    "golden/x.raw": bytes(500_000),  # shrinks: compressed
    "README.txt": b"read me\n",
}


def test_same_files_same_bytes_whatever_the_clock_the_order_and_the_folder(tmp_path: Path) -> None:
    one = folder_of(tmp_path / "one", FILES)
    two = folder_of(tmp_path / "two" / "deeper", dict(reversed(FILES.items())))
    os.utime(two / "a.bin", (1, 1))
    (two / "a.bin").chmod(0o600)
    write_archive(one, "root", tmp_path / "1.tar.gz")
    write_archive(two, "root", tmp_path / "2.tar.gz")
    assert (tmp_path / "1.tar.gz").read_bytes() == (tmp_path / "2.tar.gz").read_bytes()


def test_incompressible_files_are_stored_and_others_shrink(tmp_path: Path) -> None:
    write_archive(folder_of(tmp_path / "in", FILES), "root", tmp_path / "o.tar.gz")
    size = (tmp_path / "o.tar.gz").stat().st_size
    assert 300_000 < size < 310_000


def test_a_head_that_shrinks_does_not_speak_for_the_whole_file(tmp_path: Path) -> None:
    # As in a context binary: 64 KB that describe the graph, then weights; as a whole it would come to 0.97.
    data = bytes(64 << 10) + np.random.default_rng(0).bytes(2_000_000)
    write_archive(folder_of(tmp_path / "in", {"a.bin": data}), "root", tmp_path / "o.tar.gz")
    assert (tmp_path / "o.tar.gz").stat().st_size > len(data)


def test_gzip_and_tar_read_it_back(tmp_path: Path) -> None:
    write_archive(folder_of(tmp_path / "in", FILES), "bundle-1", tmp_path / "o.tar.gz")
    subprocess.run(["gzip", "--test", "o.tar.gz"], cwd=tmp_path, check=True)
    subprocess.run(["tar", "xzf", "o.tar.gz"], cwd=tmp_path, check=True)
    for name, data in FILES.items():
        assert (tmp_path / "bundle-1" / name).read_bytes() == data
    listing = subprocess.run(
        ["tar", "tvzf", "o.tar.gz"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert [line.split()[-1] for line in listing.splitlines()] == [f"bundle-1/{name}" for name in sorted(FILES)]
    assert all(line.startswith("-rw-r--r-- 0/0") and "1980-01-01" in line for line in listing.splitlines())


@given(
    st.dictionaries(
        st.text("abcdé ü-_.", min_size=1, max_size=12).filter(lambda name: name.strip(". ") != ""),
        st.binary(max_size=2000),
        min_size=1,
        max_size=5,
    )
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    root = tmp_path_factory.mktemp("trip")
    write_archive(folder_of(root / "in", files), "r", root / "o.tar.gz")
    (root / "out").mkdir()
    found = extract_archive(root / "o.tar.gz", root / "out")
    assert {path.name: path.read_bytes() for path in found.iterdir()} == files


def tar_with(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for member, data in members:
            member.size = len(data) if member.isfile() else 0
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def member(name: str, change: Callable[[tarfile.TarInfo], None] = lambda _: None) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    change(info)
    return info


def link(info: tarfile.TarInfo) -> None:
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"


def device(info: tarfile.TarInfo) -> None:
    info.type = tarfile.CHRTYPE


HOSTILE = {
    "absolute": tar_with((member("/tmp/evil"), b"x")),
    "parent": tar_with((member("r/../../evil"), b"x")),
    "backslash": tar_with((member("r/..\\evil"), b"x")),
    "symlink": tar_with((member("r/link", link), b"")),
    "device": tar_with((member("r/null", device), b"")),
    "two of one name": tar_with((member("r/a"), b"x"), (member("r/a"), b"y")),
    "two folders": tar_with((member("r/a"), b"x"), (member("s/a"), b"y")),
    "no folder": tar_with((member("evil"), b"x")),
    "empty": tar_with(),
    "not gzip": b"PK\x03\x04 something else",
    "gzip of no tar": gzip.compress(b"hello" * 1000),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archives_are_refused_and_write_nothing_outside(tmp_path: Path, kind: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "a.tar.gz").write_bytes(HOSTILE[kind])
    with pytest.raises(UnsafeArchive, match=r"a\.tar\.gz"):
        extract_archive(tmp_path / "a.tar.gz", inner)
    assert {path.name for path in tmp_path.iterdir()} == {"inner", "a.tar.gz"}
    assert not Path("/tmp/evil").exists()


def test_truncation_is_noticed_at_every_length(tmp_path: Path) -> None:
    write_archive(folder_of(tmp_path / "in", FILES), "r", tmp_path / "whole.tar.gz")
    whole = (tmp_path / "whole.tar.gz").read_bytes()
    for length in (0, 5, 100, len(whole) // 2, len(whole) - 30):
        (tmp_path / "cut.tar.gz").write_bytes(whole[:length])
        folder = tmp_path / f"out{length}"
        folder.mkdir()
        with pytest.raises(UnsafeArchive):
            extract_archive(tmp_path / "cut.tar.gz", folder)


def test_bytes_do_not_drift(tmp_path: Path) -> None:
    # Stored content only, so that this golden value does not depend on the zlib of the machine.
    write_archive(folder_of(tmp_path / "in", {"a.bin": FILES["a.bin"]}), "root", tmp_path / "o.tar.gz")
    with gzip.open(tmp_path / "o.tar.gz") as unpacked:
        digest = hashlib.sha256(unpacked.read()).hexdigest()
    assert digest == "440355f270012f98224ac88f901830843ea2272db941283a38bb5de633b132cf"
