from __future__ import annotations

import os
from pathlib import Path

import pytest

from qnn.errors.base import ForgeError
from qnn.model.spec import Source, SourceKind
from tests.sources.conftest import CONTENT, Bench, source


def local(locator: str, content: bytes | None = CONTENT) -> Source:
    return source(SourceKind.LOCAL, locator, None, content)


def refused(bench: Bench, wanted: Source) -> ForgeError:
    with pytest.raises(ForgeError) as caught:
        bench.fetch(wanted)
    assert bench.left() == []
    assert not bench.downloads.exists()
    return caught.value


def test_a_file_is_copied_and_checked(bench: Bench) -> None:
    (bench.model / "sub").mkdir()
    (bench.model / "sub" / "m.onnx").write_bytes(CONTENT)
    fetched = bench.fetch(local("sub/m.onnx"))
    assert fetched.path == bench.output / "m.onnx"
    assert fetched.path.read_bytes() == CONTENT
    assert refused(bench, local("sub/m.onnx", CONTENT[:-1])).id == "QF301"
    assert refused(bench, local("sub/m.onnx", CONTENT[::-1])).id == "QF301"


def test_links_inside_the_folder_are_followed(bench: Bench) -> None:
    (bench.model / "real.onnx").write_bytes(CONTENT)
    (bench.model / "m.onnx").symlink_to("real.onnx")
    fetched = bench.fetch(local("m.onnx"))
    assert fetched.path.name == "m.onnx"
    assert not fetched.path.is_symlink()


def test_links_out_of_the_folder_are_refused(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "m.onnx").write_bytes(CONTENT)
    (bench.model / "m.onnx").symlink_to(outside / "m.onnx")
    (bench.model / "sub").symlink_to(outside)
    (tmp_path / "model-evil").mkdir()
    (tmp_path / "model-evil" / "m.onnx").write_bytes(CONTENT)
    (bench.model / "sibling").symlink_to("../model-evil")
    for locator in ("m.onnx", "sub/m.onnx", "sibling/m.onnx"):
        assert refused(bench, local(locator)).id == "QF317"


@pytest.mark.parametrize("locator", ["/etc/hostname", "../x", "a/../../x", "a\\b", "a\0b"])
def test_paths_out_of_the_folder_are_refused(bench: Bench, locator: str) -> None:
    assert refused(bench, local(locator)).id == "QF317"


def test_what_is_no_regular_file_is_missing(bench: Bench) -> None:
    (bench.model / "folder").mkdir()
    (bench.model / "file").write_bytes(b"")
    (bench.model / "circle").symlink_to("circle")
    os.mkfifo(bench.model / "pipe")  # opening it would wait for ever
    for locator in ("nothing", "folder", "file/below", "circle", "pipe", "x" * 300):
        assert refused(bench, local(locator)).id == "QF316"


def test_empty_files_and_pages_are_not_pinned(bench: Bench) -> None:
    (bench.model / "empty.onnx").write_bytes(b"")
    (bench.model / "page.onnx").write_bytes(b"\n<!DOCTYPE HTML><title>not found</title>")
    (bench.model / "lfs.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
    for name in ("empty.onnx", "page.onnx", "lfs.onnx"):
        assert refused(bench, local(name, None)).id == "QF322"
    (bench.model / "LICENSE.html").write_bytes(b"<html>terms</html>")
    assert bench.fetch(local("LICENSE.html", None)).size == 18


def test_a_pointer_in_place_of_a_pinned_file_is_recognised(bench: Bench) -> None:
    (bench.model / "m.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
    error = refused(bench, local("m.onnx"))
    assert error.id == "QF301"
    assert "Git LFS pointer" in error.details[-1]
