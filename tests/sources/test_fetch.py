from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from qnn.errors.base import ForgeError
from qnn.model.spec import Source, SourceKind
from qnn.sources.fetch import fetch, output_name
from qnn.sources.protocol import download_limit
from qnn.sources.shelf import Shelf
from tests.sources import fake_server as fake
from tests.sources.conftest import CONTENT, PLAIN, Bench, digest, source
from tests.sources.fake_server import FakeServer

UrlSource = Callable[..., Source]


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def body_of(bench: Bench) -> Path:
    """The one complete download."""
    (body,) = bench.downloads.glob("artefacts/*/body")
    return body


def test_a_second_fetch_needs_no_network(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    bench.fetch(url_source("/m"))
    assert bench.fetch(url_source("/m")).path.read_bytes() == CONTENT
    assert len(server.seen) == 1


def test_one_archive_serves_several_members(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/a.zip"] = fake.file(zipped({"x/det.onnx": CONTENT, "LICENSE": b"terms"}))
    assert bench.fetch(url_source("/a.zip", "x/det.onnx")).path.name == "det.onnx"
    assert bench.fetch(url_source("/a.zip", "LICENSE", b"terms")).path.read_bytes() == b"terms"
    assert len(server.seen) == 1


def test_the_same_content_at_another_address_is_not_downloaded(
    bench: Bench, server: FakeServer, url_source: UrlSource
) -> None:
    server.routes["/a.zip"] = fake.file(zipped({"x/det.onnx": CONTENT}))
    server.routes["/mirror/other-name.onnx"] = fake.file(CONTENT)
    bench.fetch(url_source("/a.zip", "x/det.onnx"))
    fetched = bench.fetch(url_source("/mirror/other-name.onnx"))
    assert fetched.path.name == "other-name.onnx"
    assert fetched.path.read_bytes() == CONTENT
    assert len(server.seen) == 1


def test_unpinned_content_is_never_taken_from_another_address(
    bench: Bench, server: FakeServer, url_source: UrlSource
) -> None:
    server.routes["/a"] = fake.file(CONTENT)
    server.routes["/b"] = fake.file(CONTENT[::-1])
    bench.fetch(url_source("/a"))
    assert bench.fetch(url_source("/b", None, None)).sha256 == digest(CONTENT[::-1])


def test_a_damaged_download_is_fetched_again(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    bench.fetch(url_source("/m"))
    body_of(bench).write_bytes(CONTENT[::-1])  # the same size
    assert bench.fetch(url_source("/m")).path.read_bytes() == CONTENT
    body_of(bench).write_bytes(CONTENT[:100])
    assert bench.fetch(url_source("/m")).path.read_bytes() == CONTENT
    assert [seen.headers.get("if-none-match") for seen in server.seen] == [None, None, None]


def test_a_damaged_download_is_not_pinned(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    bench.fetch(url_source("/m", None, None))
    body_of(bench).write_bytes(CONTENT[::-1])
    assert bench.fetch(url_source("/m", None, None)).sha256 == digest(CONTENT)


def test_a_damaged_archive_is_fetched_again(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/a.zip"] = fake.file(zipped({"det.onnx": CONTENT}))
    bench.fetch(url_source("/a.zip", "det.onnx"))
    data = bytearray(body_of(bench).read_bytes())
    data[:4] = b"ruin"
    body_of(bench).write_bytes(data)
    assert bench.fetch(url_source("/a.zip", "det.onnx")).path.read_bytes() == CONTENT


def test_a_new_version_at_the_address_is_found_once_it_is_pinned(
    bench: Bench, server: FakeServer, url_source: UrlSource
) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    bench.fetch(url_source("/m"))
    server.routes["/m"] = fake.file(CONTENT[::-1], '"v2"')
    assert bench.fetch(url_source("/m")).sha256 == digest(CONTENT)  # the pinned content is still there
    assert bench.fetch(url_source("/m", None, CONTENT[::-1])).sha256 == digest(CONTENT[::-1])


def test_a_wrong_pin_asks_once_and_fails(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    bench.fetch(url_source("/m"))
    with pytest.raises(ForgeError) as caught:
        bench.fetch(url_source("/m", None, b"something else" * 100))
    assert caught.value.id == "QF301"
    assert server.sent == 10240  # asked by ETag: nothing new, so nothing sent
    assert bench.left() == []


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"size": "x"}',
        '{"size": 10240, "sha256": 5}',
        '{"artefact": "../../..", "member": null}',
        '{"artefact": "0000000000000000000000000000000000000000", "member": 5}',
    ],
)
def test_ruined_records_are_as_good_as_none(
    bench: Bench, server: FakeServer, url_source: UrlSource, record: str
) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    bench.fetch(url_source("/m"))
    for path in bench.downloads.rglob("*.json"):
        path.write_text(record)
    assert bench.fetch(url_source("/m")).path.read_bytes() == CONTENT
    assert len(server.seen) == 2


def test_two_processes_download_once(bench: Bench, server: FakeServer, tmp_path: Path) -> None:
    server.routes["/m"] = fake.slow(fake.file(CONTENT), 0.5)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(["scripts", "."]))
    processes = []
    for number in range(2):
        out = tmp_path / f"process-{number}"
        out.mkdir()
        arguments = [server.url("/m"), digest(CONTENT), str(len(CONTENT)), str(out), str(bench.downloads)]
        command = [sys.executable, "-m", "tests.sources.fetch_once", *arguments]
        root = Path(__file__).parents[2]
        processes.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd=root)
        )
    outputs = [process.communicate(timeout=60)[0].decode().strip() for process in processes]
    assert outputs == [digest(CONTENT)] * 2
    assert [(tmp_path / f"process-{number}" / "m").read_bytes() for number in range(2)] == [CONTENT] * 2
    assert len(server.seen) == 1


def test_threads_with_mirrors_of_one_content_download_once(
    bench: Bench, server: FakeServer, url_source: UrlSource, tmp_path: Path
) -> None:
    results: list[bytes] = []

    def one(number: int) -> None:
        out = tmp_path / f"thread-{number}"
        out.mkdir()
        wanted = url_source(f"/{number}")
        fetched = fetch(wanted, out, bench.downloads, model_folder=bench.model, policy=PLAIN)
        results.append(fetched.path.read_bytes())

    for number in range(4):
        server.routes[f"/{number}"] = fake.slow(fake.file(CONTENT), 0.1)
    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [CONTENT] * 4
    assert len(server.seen) == 1


def test_members_of_one_archive_wanted_at_once_are_one_download(
    bench: Bench, server: FakeServer, url_source: UrlSource, tmp_path: Path
) -> None:
    members = {f"{number}.onnx": bytes([number]) * 100 for number in range(3)}
    server.routes["/a.zip"] = fake.slow(fake.file(zipped(members)), 0.1)
    results: dict[str, bytes] = {}

    def one(name: str) -> None:
        out = tmp_path / f"thread-{name}"
        out.mkdir()
        wanted = url_source("/a.zip", name, members[name])
        fetched = fetch(wanted, out, bench.downloads, model_folder=bench.model, policy=PLAIN)
        results[name] = fetched.path.read_bytes()

    threads = [threading.Thread(target=one, args=(name,)) for name in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == members
    assert len(server.seen) == 1


def test_a_record_cannot_lead_out_of_the_downloads(
    bench: Bench, server: FakeServer, url_source: UrlSource, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "body").write_bytes(CONTENT[::-1])
    (outside / "body.json").write_text(f'{{"size": {len(CONTENT)}, "sha256": "{digest(CONTENT)}", "etag": null}}')
    (bench.downloads / "known").mkdir(parents=True)
    (bench.downloads / "artefacts").mkdir()
    record = bench.downloads / "known" / f"{digest(CONTENT)}.json"
    record.write_text('{"artefact": "../../outside", "member": null}')
    server.routes["/m"] = fake.file(CONTENT)
    assert bench.fetch(url_source("/m")).path.read_bytes() == CONTENT
    assert (outside / "body").exists()


def test_a_killed_download_goes_on(bench: Bench, server: FakeServer, url_source: UrlSource, tmp_path: Path) -> None:
    def stalling(handler: fake.Handler) -> None:
        handler.head(200, Content_Length=len(CONTENT), ETag='"v1"')
        handler.body(CONTENT[:3000])
        handler.wfile.flush()
        half.set()
        ended.wait(20)

    half, ended = threading.Event(), threading.Event()
    server.routes["/m"] = fake.in_turn(stalling, fake.file(CONTENT))
    out = tmp_path / "killed"
    out.mkdir()
    arguments = [server.url("/m"), digest(CONTENT), str(len(CONTENT)), str(out), str(bench.downloads)]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(["scripts", "."]))
    command = [sys.executable, "-m", "tests.sources.fetch_once", *arguments]
    process = subprocess.Popen(command, env=environment, cwd=Path(__file__).parents[2])
    assert half.wait(20)
    for _ in range(2000):  # what came is on disk at once, not when the connection ends
        if any(path.stat().st_size == 3000 for path in bench.downloads.glob("artefacts/*/partial")):
            break
        assert process.poll() is None
        time.sleep(0.01)
    else:
        pytest.fail("nothing was written")
    process.kill()
    process.wait()
    ended.set()
    assert list(out.iterdir()) == []
    assert bench.fetch(url_source("/m")).path.read_bytes() == CONTENT
    assert server.seen[1].headers["range"] == "bytes=3000-"
    assert server.sent == 10240


def test_somebody_elses_file_in_the_output_folder_is_left_alone(bench: Bench, tmp_path: Path) -> None:
    (bench.model / "m.onnx").write_bytes(CONTENT)
    out = tmp_path / "full"
    out.mkdir()
    (out / "m.onnx").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        fetch(source(SourceKind.LOCAL, "m.onnx"), out, bench.downloads, model_folder=bench.model)
    assert (out / "m.onnx").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("kind", "locator", "member", "name"),
    [
        (SourceKind.URL, "https://example.org/a/m%20x.onnx?download=1", None, "m x.onnx"),
        (SourceKind.URL, "https://example.org/", None, "det"),
        (SourceKind.URL, "https://example.org", None, "det"),
        (SourceKind.URL, "https://example.org/a.zip", "x/y.onnx", "y.onnx"),
        (SourceKind.GITHUB, "o/r@v1/m.onnx", None, "m.onnx"),
        (SourceKind.LOCAL, "sub/m.onnx", None, "m.onnx"),
        (SourceKind.PYPI, "p==1", "p/m.onnx", "m.onnx"),
    ],
)
def test_output_names(kind: SourceKind, locator: str, member: str | None, name: str) -> None:
    assert output_name(source(kind, locator, member)) == name


@pytest.mark.parametrize("path", ["%2e%2e", "a%2f..", "..", "%00", "a%5cb", "a%0ab", "x" * 201])
def test_names_that_are_none_are_refused(path: str) -> None:
    with pytest.raises(ForgeError) as caught:
        output_name(source(SourceKind.URL, f"https://example.org/{path}"))
    assert caught.value.id == "QF317"


def test_how_much_may_come() -> None:
    plain = source(SourceKind.URL, "https://example.org/m")
    policy = replace(PLAIN, unpinned_limit=1000)
    assert download_limit(plain, policy) == 10240
    assert download_limit(replace(plain, member="m"), policy) == 11240
    assert download_limit(replace(plain, size=None), policy) == 1000
    assert download_limit(replace(plain, kind=SourceKind.HUGGINGFACE, member="m"), policy) == 10240


def test_addresses_have_slots_of_their_own(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    assert shelf.slot("url:a") == shelf.slot("url:a")
    assert shelf.slot("url:a") != shelf.slot("url:b")
    assert shelf.slot("url:a").find() is None
    assert list(tmp_path.iterdir()) == []  # looking makes nothing


def test_messages_hold_nothing_that_a_terminal_obeys(bench: Bench) -> None:
    with pytest.raises(ForgeError) as caught:
        bench.fetch(source(SourceKind.URL, "https://example.org/\x1b[31m\nm"))
    assert caught.value.message.isprintable()
    assert "\\x1b[31m\\n" in caught.value.message
