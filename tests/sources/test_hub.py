from __future__ import annotations

import errno
import resource
from dataclasses import replace

import pytest

from qnn.errors.base import ForgeError
from qnn.model.spec import Source, SourceKind
from qnn.sources.fetch import fetch
from qnn.sources.protocol import Policy
from tests.sources import fake_hub
from tests.sources import fake_server as fake
from tests.sources.conftest import CONTENT, PLAIN, Bench, digest, source
from tests.sources.fake_hub import COMMIT, REPO
from tests.sources.fake_server import FakeServer

WANTED = source(SourceKind.HUGGINGFACE, f"{REPO}@{COMMIT}", "onnx/det.onnx")


@pytest.fixture
def hub(server: FakeServer) -> Policy:
    """Terms under which the fake server is the Hub."""
    return replace(PLAIN, hub_endpoint=server.url("").rstrip("/"))


def refused(bench: Bench, wanted: Source, policy: Policy) -> ForgeError:
    with pytest.raises(ForgeError) as caught:
        bench.fetch(wanted, policy)
    assert bench.left() == []
    return caught.value


@pytest.mark.parametrize("lfs", [True, False])
def test_a_file_at_a_commit_comes_once(bench: Bench, server: FakeServer, hub: Policy, lfs: bool) -> None:
    fake_hub.add_file(server, "onnx/det.onnx", CONTENT, lfs=lfs)
    fetched = bench.fetch(WANTED, hub)
    assert fetched.path == bench.output / "det.onnx"
    assert fetched.path.read_bytes() == CONTENT
    asked = len(server.seen)
    assert bench.fetch(WANTED, hub).sha256 == digest(CONTENT)
    assert bench.fetch(replace(WANTED, sha256=None, size=None), hub).sha256 == digest(CONTENT)
    assert len(server.seen) == asked  # a commit does not change, so nobody is asked again
    assert server.sent == 10240


def test_the_progress_reaches_the_end(bench: Bench, server: FakeServer, hub: Policy) -> None:
    class Recorder:
        steps: list[tuple[str, int, int | None]] = []  # noqa: RUF012 - one recorder, one test

        def advance(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
            self.steps.append((name, done_bytes, total_bytes))

    fake_hub.add_file(server, "onnx/det.onnx", CONTENT)
    folder = bench.model
    fetch(WANTED, folder, bench.downloads, model_folder=bench.model, progress=Recorder(), policy=hub)
    assert Recorder.steps[-1] == ("det", 10240, 10240)


@pytest.mark.parametrize(
    ("route", "error_id", "words"),
    [
        (fake_hub.missing("RepoNotFound"), "QF302", "no such repository"),
        (fake_hub.missing("RevisionNotFound"), "QF302", "no such commit"),
        (fake_hub.missing("EntryNotFound"), "QF302", "no such file"),
        (fake_hub.missing("GatedRepo", 403), "QF303", "gated"),
        (fake.status(403), "QF303", "refused"),
        (fake.status(429), "QF304", "too many requests"),
        (fake.status(500), "QF305", "fault of the server"),
        (fake.status(503), "QF305", "fault of the server"),
        (fake.file(CONTENT), "QF321", "commit None"),  # some other web server
    ],
)
def test_what_the_hub_refuses_is_one_clear_error(
    bench: Bench, server: FakeServer, hub: Policy, route: fake.Route, error_id: str, words: str
) -> None:
    server.routes[fake_hub.path_of("onnx/det.onnx")] = route
    error = refused(bench, WANTED, hub)
    assert error.id == error_id
    assert words in error.message


def test_another_commit_is_not_accepted(bench: Bench, server: FakeServer, hub: Policy) -> None:
    fake_hub.add_file(server, "onnx/det.onnx", CONTENT, commit="f" * 40)
    assert refused(bench, WANTED, hub).id == "QF321"
    assert server.sent == 0


def test_another_content_is_refused_before_it_is_downloaded(bench: Bench, server: FakeServer, hub: Policy) -> None:
    fake_hub.add_file(server, "onnx/det.onnx", CONTENT[::-1])
    error = refused(bench, WANTED, hub)
    assert error.id == "QF301"
    assert digest(CONTENT[::-1]) in error.details[1]
    assert server.sent == 0


def test_another_content_of_unknown_hash_is_refused_after_it(bench: Bench, server: FakeServer, hub: Policy) -> None:
    fake_hub.add_file(server, "onnx/det.onnx", CONTENT[::-1], lfs=False)
    assert refused(bench, WANTED, hub).id == "QF301"


def test_size_is_bounded_before_pinning(bench: Bench, server: FakeServer, hub: Policy) -> None:
    fake_hub.add_file(server, "onnx/det.onnx", CONTENT)
    unpinned = replace(WANTED, sha256=None, size=None)
    assert refused(bench, unpinned, replace(hub, unpinned_limit=10239)).id == "QF307"
    assert server.sent == 0


def test_a_short_body_is_a_broken_transfer(bench: Bench, server: FakeServer, hub: Policy) -> None:
    fake_hub.add_file(server, "onnx/det.onnx", CONTENT)
    server.routes[f"/blobs/{digest(CONTENT)}"] = fake.file(CONTENT[:5000])
    assert refused(bench, WANTED, hub).id == "QF306"


def test_a_transfer_that_breaks_for_ever_ends(
    bench: Bench, server: FakeServer, hub: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)  # bytes that count as progress
    fake_hub.add_file(server, "onnx/det.onnx", CONTENT)

    def broken(handler: fake.Handler) -> None:
        handler.head(200, Content_Length=len(CONTENT))  # no ranges: it starts from the beginning every time
        handler.body(CONTENT[:5000])
        handler.hang_up()

    server.routes[f"/blobs/{digest(CONTENT)}"] = broken
    assert refused(bench, WANTED, hub).id == "QF306"
    assert server.sent <= 4 * 10240


def test_no_hub_there(bench: Bench) -> None:
    assert refused(bench, WANTED, replace(PLAIN, hub_endpoint="http://127.0.0.1:1")).id == "QF309"


def test_a_hub_with_an_untrusted_certificate(bench: Bench, tls_server: FakeServer) -> None:
    assert refused(bench, WANTED, replace(PLAIN, hub_endpoint=tls_server.url(""))).id == "QF308"


def test_a_silent_hub(bench: Bench, server: FakeServer, hub: Policy) -> None:
    server.routes[fake_hub.path_of("onnx/det.onnx")] = fake.slow(fake.status(200), 1.0)
    assert refused(bench, WANTED, replace(hub, read_timeout=0.2)).id == "QF310"


def test_a_disk_fault_goes_through(bench: Bench, server: FakeServer, hub: Policy) -> None:
    fake_hub.add_file(server, "onnx/det.onnx", CONTENT)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        with pytest.raises(OSError, match="too large") as caught:
            bench.fetch(WANTED, hub)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert bench.left() == []


@pytest.mark.parametrize(
    ("locator", "member"),
    [
        (f"{REPO}@main", "det.onnx"),
        (f"{REPO}@{COMMIT[:12]}", "det.onnx"),
        (REPO, "det.onnx"),
        (f"det@{COMMIT}", "det.onnx"),
        (f"{REPO}@{COMMIT.upper()}", "det.onnx"),
        (f"{REPO}@{COMMIT}", None),
        (f"{REPO}@{COMMIT}", "../det.onnx"),
        (f"{REPO}@{COMMIT}", "/det.onnx"),
        (f"{REPO}@{COMMIT}", "a\\b/det.onnx"),
    ],
)
def test_anything_but_a_full_commit_and_a_path_is_refused(
    bench: Bench, hub: Policy, server: FakeServer, locator: str, member: str | None
) -> None:
    assert refused(bench, source(SourceKind.HUGGINGFACE, locator, member), hub).id == "QF320"
    assert server.seen == []
