"""The directory of a flexible context binary."""

from __future__ import annotations

import zipfile
from pathlib import Path

from qnn.binary.universal import read_dlc
from tests.binary.conftest import DATA


def test_records_are_where_the_directory_says() -> None:
    dlc = read_dlc(DATA / "universal.bin")
    assert dlc is not None
    assert dlc.chips == ("SM8350", "SM8450")
    content = (DATA / "universal.bin").read_bytes()
    caches = [record for record in dlc.records if record.name.startswith("htp.cache.")]
    assert [(record.name, record.size) for record in caches] == [
        ("htp.cache.sm8350.0", 36864),
        ("htp.cache.sm8450.0", 36864),
    ]
    # Data is aligned to pages, as the device maps it; each record begins right behind its local header and padding.
    assert all(record.offset % 4096 == 0 for record in caches)
    assert all(record.offset + record.size <= len(content) for record in dlc.records)
    assert [record.offset for record in dlc.records] == sorted(record.offset for record in dlc.records)


def test_the_python_reader_refuses_its_records_which_is_why_we_read_by_offset() -> None:
    with zipfile.ZipFile(DATA / "universal.bin") as archive:
        assert archive.getinfo("htp.cache.sm8350.0").CRC == 0


def test_a_zip_that_is_no_dlc_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("encoder.bin", b"content")
    assert read_dlc(path) is None
    path.write_bytes(path.read_bytes()[:40])
    assert read_dlc(path) is None


def test_a_dlc_without_compiled_contexts_has_no_chips(tmp_path: Path) -> None:
    path = tmp_path / "model.dlc"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model", b"")
        archive.writestr("model.params", b"")
    dlc = read_dlc(path)
    assert dlc is not None
    assert (dlc.chips, [record.name for record in dlc.records]) == ((), ["model", "model.params"])
