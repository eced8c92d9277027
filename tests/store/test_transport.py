"""Store entries carried to another machine: all bytes checked, nothing foreign taken over."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from qnn.errors.system import ForeignEntry
from qnn.store import StageKey, Store
from qnn.store.transport import pack, unpack

KEYS = tuple(StageKey("compile", "code", {"soc": soc}, {"prepared": "ab" * 32}) for soc in (57, 69))


def fill(store: Store) -> None:
    for key in KEYS:

        def produce(folder: Path, soc: object = key.parameters["soc"]) -> None:
            (folder / "sub").mkdir()
            (folder / "sub" / "net.bin").write_text(f"binary for {soc}")

        store.make(key, produce)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A tar of two entries; a third key has none."""
    with Store(tmp_path / "here") as store:
        fill(store)
        packed = pack(store, [*KEYS, StageKey("compile", "other")], tmp_path / "a.tar")
    assert len(packed) == 2
    return tmp_path / "a.tar"


def test_entries_arrive_whole_and_are_found_by_their_keys(archive: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "there") as store:
        assert {entry.digest for entry in unpack(store, archive)} == {key.digest for key in KEYS}
        for key in KEYS:
            entry = store.get(key)
            assert entry is not None
            assert (entry.folder / "sub/net.bin").read_text() == f"binary for {key.parameters['soc']}"
        assert unpack(store, archive)  # twice does no harm
        assert list((store.root / "tmp").iterdir()) == []


def test_the_same_entries_are_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "elsewhere") as store:
        fill(store)
        pack(store, reversed(KEYS), tmp_path / "b.tar")
    assert (tmp_path / "b.tar").read_bytes() == archive.read_bytes()


def rewritten(archive: Path, change: Callable[[str, bytes], tuple[str, bytes]]) -> None:
    """The archive with every member put through `change`."""
    with tarfile.open(archive) as packed:
        members = [(member.name, packed.extractfile(member).read()) for member in packed]  # type: ignore[union-attr]
    with tarfile.open(archive, "w") as packed:
        for name, data in members:
            name, data = change(name, data)  # noqa: PLW2901
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))


def other_content(name: str, data: bytes) -> tuple[str, bytes]:
    return name, data.replace(b"binary", b"BINARY") if name.endswith("net.bin") else data


def other_key(name: str, data: bytes) -> tuple[str, bytes]:
    if name.endswith("entry.json"):
        document = json.loads(data)
        document["parameters"]["soc"] = 99
        data = json.dumps(document).encode()
    return name, data


def outside(name: str, data: bytes) -> tuple[str, bytes]:
    return (f"../{name}" if name.endswith("net.bin") else name), data


def garbled(name: str, data: bytes) -> tuple[str, bytes]:
    return name, b"{" if name.endswith("entry.json") else data


def nested(name: str, data: bytes) -> tuple[str, bytes]:
    return name, b"[" * 100_000 if name.endswith("entry.json") else data


def infinite(name: str, data: bytes) -> tuple[str, bytes]:
    return name, re.sub(rb'"size": *\d+', b'"size": 1e999', data) if name.endswith("entry.json") else data


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (nested, "cannot be read"),
        (infinite, "cannot be read"),
        (other_content, "not what its record says"),
        (other_key, "another entry's"),
        (outside, "would leave its folder"),
        (garbled, "cannot be read"),
    ],
)
def test_what_is_not_what_it_says_is_refused(
    archive: Path, tmp_path: Path, change: Callable[[str, bytes], tuple[str, bytes]], says: str
) -> None:
    rewritten(archive, change)
    with Store(tmp_path / "there") as store:
        with pytest.raises(ForeignEntry, match=says):
            unpack(store, archive)
        assert store.get(KEYS[0]) is None
        assert list((store.root / "tmp").iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"not a tar at all" * 100])
def test_no_tar(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(data)
    with Store(tmp_path / "there") as store, pytest.raises(ForeignEntry, match="no tar"):
        unpack(store, tmp_path / "a.tar")
