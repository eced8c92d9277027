from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from qnn.errors.base import ForgeError
from qnn.model.spec import Source, SourceKind
from qnn.sources import pypi
from qnn.sources.fetch import fetch
from qnn.sources.protocol import Policy
from tests.sources import fake_server as fake
from tests.sources.conftest import CONTENT, PLAIN, Bench, source
from tests.sources.fake_server import FakeServer

WANTED = source(SourceKind.PYPI, "fake-model==1.0", "fake_model/det.onnx")
WHEEL = "fake_model-1.0-py3-none-any.whl"


def wheel(members: dict[str, bytes]) -> bytes:
    """A wheel with enough metadata for pip to download it."""
    metadata = {
        "fake_model-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: fake-model\nVersion: 1.0\n"
        b"Requires-Python: >=3.99\nRequires-Dist: never-to-be-asked-for\n",
        "fake_model-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "fake_model-1.0.dist-info/RECORD": b"",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {**members, **metadata}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def index(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """The fake server as the one package index that pip knows, with one wheel and one source distribution."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", server.url("/simple"))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    add_page(server, WHEEL, "fake_model-1.1.tar.gz")
    server.routes[f"/files/{WHEEL}"] = fake.file(wheel({"fake_model/det.onnx": CONTENT, "fake_model/rec.onnx": b"rec"}))
    return server


def add_page(server: FakeServer, *files: str) -> None:
    """The index's page of the package."""
    page = "".join(f'<a href="/files/{name}" data-requires-python="&gt;=3.99">{name}</a>' for name in files)
    server.routes["/simple/fake-model/"] = html(page)


def html(page: str) -> fake.Route:
    def route(handler: fake.Handler) -> None:
        data = f"<!DOCTYPE html><html><body>{page}</body></html>".encode()
        handler.head(200, Content_Length=len(data), Content_Type="text/html")
        handler.body(data)

    return route


def refused(bench: Bench, wanted: Source, policy: Policy = PLAIN) -> ForgeError:
    with pytest.raises(ForgeError) as caught:
        bench.fetch(wanted, policy)
    assert bench.left() == []
    assert [path for path in bench.downloads.rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    return caught.value


def test_a_member_of_a_wheel_of_the_real_index(bench: Bench) -> None:
    fetched = bench.fetch(source(SourceKind.PYPI, "six==1.16.0", "six.py", None))
    assert fetched.path == bench.output / "six.py"
    assert fetched.size == 34549
    assert fetched.sha256 == "4ce39f422ee71467ccac8bed76beb05f8c321c7f0ceda9279ae2dfa3670106b3"
    assert b'__version__ = "1.16.0"' in fetched.path.read_bytes()


def test_one_wheel_serves_all_its_members(bench: Bench, index: FakeServer) -> None:
    assert bench.fetch(WANTED).path.read_bytes() == CONTENT
    other = source(SourceKind.PYPI, "Fake_Model==1.0.0", "fake_model/rec.onnx", b"rec")  # the same package and version
    assert bench.fetch(other).path.read_bytes() == b"rec"
    assert [seen.path for seen in index.seen] == ["/simple/fake-model/", f"/files/{WHEEL}"]


def test_a_missing_member_is_named_from_the_wheel_that_is_there(bench: Bench, index: FakeServer) -> None:
    with pytest.raises(ForgeError) as caught:
        bench.fetch(replace(WANTED, member="fake_model/Det.onnx"))
    assert caught.value.id == "QF312"
    assert "near: fake_model/det.onnx" in caught.value.details
    assert bench.left() == []


@pytest.mark.parametrize(
    ("locator", "error_id", "words"),
    [
        ("fake-model==9.9", "QF302", "no wheel"),
        ("fake-model==1.1", "QF302", "no wheel"),  # only a source distribution
        ("other-model==1.0", "QF302", "no wheel"),
    ],
)
def test_versions_without_a_wheel(bench: Bench, index: FakeServer, locator: str, error_id: str, words: str) -> None:
    error = refused(bench, replace(WANTED, locator=locator))
    assert error.id == error_id
    assert words in error.message
    assert any("No matching distribution" in line for line in error.details)
    assert not any(seen.path.endswith(".tar.gz") for seen in index.seen)


@pytest.mark.parametrize(("code", "error_id"), [(403, "QF303"), (429, "QF304"), (503, "QF305"), (404, "QF302")])
def test_what_the_index_answers_for_the_file(bench: Bench, index: FakeServer, code: int, error_id: str) -> None:
    index.routes[f"/files/{WHEEL}"] = fake.status(code)
    error = refused(bench, WANTED)
    assert error.id == error_id
    assert any(str(code) in line for line in error.details)


@pytest.mark.parametrize(("code", "error_id"), [(401, "QF303"), (429, "QF304"), (503, "QF305"), (404, "QF302")])
def test_what_the_index_answers_for_the_package(bench: Bench, index: FakeServer, code: int, error_id: str) -> None:
    index.routes["/simple/fake-model/"] = fake.status(code)
    error = refused(bench, WANTED)
    assert error.id == error_id
    assert any(str(code) in line for line in error.details)


def test_a_wheel_cut_short(bench: Bench, index: FakeServer) -> None:
    index.routes[f"/files/{WHEEL}"] = fake.cut(wheel({"fake_model/det.onnx": CONTENT}), 1000)
    assert refused(bench, WANTED).id == "QF306"


def test_an_index_that_is_gone(bench: Bench, index: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    assert refused(bench, WANTED).id == "QF309"


def test_an_index_with_an_untrusted_certificate(
    bench: Bench, index: FakeServer, tls_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", tls_server.url("/simple"))
    assert refused(bench, WANTED).id == "QF308"


def test_a_silent_index_and_a_pip_that_does_not_end(
    bench: Bench, index: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.routes["/simple/fake-model/"] = fake.slow(fake.status(200), 2.0)
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "0.3")
    assert refused(bench, WANTED).id == "QF310"
    monkeypatch.delenv("PIP_DEFAULT_TIMEOUT")
    error = refused(bench, WANTED, replace(PLAIN, pip_timeout=0.5))
    assert error.id == "QF310"
    assert "pip did not end" in error.message


def test_a_wheel_is_bounded(bench: Bench, index: FakeServer) -> None:
    unpinned = replace(WANTED, sha256=None, size=None)
    assert refused(bench, unpinned, replace(PLAIN, unpinned_limit=5000)).id == "QF307"


def test_a_wheel_that_never_ends_is_stopped_while_it_comes(bench: Bench, index: FakeServer) -> None:
    def endless(handler: fake.Handler) -> None:
        handler.head(200, Content_Length=1 << 40)
        while True:
            handler.body(bytes(1 << 16))

    index.routes[f"/files/{WHEEL}"] = endless
    unpinned = replace(WANTED, sha256=None, size=None)
    assert refused(bench, unpinned, replace(PLAIN, unpinned_limit=1 << 20)).id == "QF307"


def test_a_python_without_pip(bench: Bench, index: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{os.path.realpath(sys.executable)}" -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr("qnn.sources.pypi.sys.executable", str(bare))
    error = refused(bench, WANTED)
    assert error.id == "QF319"
    assert "ensurepip" in error.remedy


def test_a_pip_py_of_the_current_folder_is_not_run(
    bench: Bench, index: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pip.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "pip").mkdir()
    monkeypatch.chdir(tmp_path)
    bench.fetch(WANTED)
    assert not (tmp_path / "ran").exists()


def test_progress_is_reported_while_pip_works(bench: Bench, index: FakeServer) -> None:
    steps: list[tuple[str, int, int | None]] = []

    class Recorder:
        def advance(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
            steps.append((name, done_bytes, total_bytes))

    fetch(WANTED, bench.model, bench.downloads, model_folder=bench.model, progress=Recorder(), policy=PLAIN)
    assert {(name, total) for name, _, total in steps} == {("det", None)}


def test_counting_is_not_disturbed_by_what_vanishes(tmp_path: Path) -> None:
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            (tmp_path / "gone").mkdir()
            (tmp_path / "gone" / "file").write_bytes(bytes(10))
            shutil.rmtree(tmp_path / "gone")

    (tmp_path / "stays").write_bytes(bytes(100))
    thread = threading.Thread(target=come_and_go)
    thread.start()
    counts = {pypi._bytes_in(tmp_path) for _ in range(1000)}
    ended.set()
    thread.join()
    assert counts <= {100, 110}


@pytest.mark.parametrize(
    "locator",
    [
        "fake-model",
        "fake-model>=1.0",
        "fake-model==1.*",
        "fake-model==",
        "fake-model[extra]==1.0",
        "fake-model==1.0; python_version>'3'",
        "fake-model==1.0 --index-url=http://evil.example",
        "--index-url=http://evil.example",
        "-r==1.0",
        "fake-model@https://evil.example/x.whl",
        "fake-model==not.a.version",
        "./fake_model-1.0.whl",
        "",
    ],
)
def test_only_exact_versions_reach_pip(bench: Bench, index: FakeServer, locator: str) -> None:
    assert refused(bench, replace(WANTED, locator=locator)).id == "QF320"
    assert index.seen == []
