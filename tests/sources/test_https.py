from __future__ import annotations

import errno
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from qnn.errors.base import ForgeError
from qnn.model.spec import Source, SourceKind
from qnn.sources.protocol import Policy
from tests.sources import fake_server as fake
from tests.sources.conftest import CONTENT, PLAIN, Bench, digest, source
from tests.sources.fake_server import FakeServer

UrlSource = Callable[..., Source]


def refused(bench: Bench, wanted: Source, policy: Policy = PLAIN) -> ForgeError:
    """The error of a fetch that must fail and leave nothing."""
    with pytest.raises(ForgeError) as caught:
        bench.fetch(wanted, policy)
    assert bench.left() == []
    assert '"det"' in caught.value.message
    assert caught.value.remedy
    return caught.value


def test_a_file_arrives_under_its_own_name(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m/det%20v2.onnx"] = fake.file(CONTENT)
    fetched = bench.fetch(url_source("/m/det%20v2.onnx"))
    assert fetched.path == bench.output / "det v2.onnx"
    assert fetched.path.read_bytes() == CONTENT
    assert (fetched.sha256, fetched.size) == (digest(CONTENT), 10240)
    assert bench.left() == ["det v2.onnx"]
    assert server.seen[0].headers["accept-encoding"] == "identity"
    assert server.seen[0].headers["user-agent"].startswith("qnn-forge/")


def test_chunked_answers_without_a_length_arrive_whole(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.chunked(CONTENT)
    assert bench.fetch(url_source("/m")).size == 10240


@pytest.mark.parametrize(
    ("route", "error_id", "requests"),
    [
        (fake.status(404), "QF302", 1),
        (fake.status(410), "QF302", 1),
        (fake.status(401), "QF303", 1),
        (fake.status(403), "QF303", 1),
        (fake.status(429), "QF304", 3),
        (fake.status(429, Retry_After="3600"), "QF304", 1),
        (fake.status(429, Retry_After="Wed, 21 Oct 2099 07:28:00 GMT"), "QF304", 1),
        (fake.status(403, X_RateLimit_Remaining="0"), "QF304", 3),
        (fake.status(500), "QF305", 3),
        (fake.status(503, Retry_After="0"), "QF305", 3),
        (fake.status(418), "QF321", 1),
        (fake.status(206), "QF321", 1),
        (fake.status(304), "QF321", 1),
        (fake.status(200, Content_Encoding="gzip"), "QF321", 1),
        (fake.hangs_up, "QF306", 3),
        (fake.cut(CONTENT, 100, etag=None), "QF306", 1),
        (fake.cut(CONTENT, 100, etag='W/"v1"'), "QF306", 1),
        (fake.cut(CONTENT, 100), "QF306", 3),
        (fake.file(CONTENT[:-1]), "QF301", 1),
        (fake.file(CONTENT + b"!"), "QF301", 1),
        (fake.file(CONTENT[::-1]), "QF301", 1),
        (fake.chunked(CONTENT[:-1]), "QF301", 1),
        (fake.chunked(CONTENT + b"!" * 5000), "QF307", 1),
        (fake.redirect("/m"), "QF311", 1),
        (fake.redirect("http://localhost:1/m"), "QF311", 1),
        (fake.redirect("ftp://127.0.0.1/m"), "QF311", 1),
        (fake.redirect("file:///etc/passwd"), "QF311", 1),
        (fake.redirect("http://user:secret@127.0.0.1/m"), "QF311", 1),
        (fake.status(302), "QF311", 1),
        (fake.status(302, Location="http://[bad"), "QF311", 1),
    ],
)
def test_each_fault_is_one_clear_error(
    bench: Bench, server: FakeServer, url_source: UrlSource, route: fake.Route, error_id: str, requests: int
) -> None:
    server.routes["/m"] = route
    error = refused(bench, url_source("/m"))
    assert (error.id, int(error.exit_code)) == (error_id, 5)
    assert len(server.seen) == requests
    assert "secret" not in str(error)


def test_a_mismatch_names_expected_and_actual(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.file(CONTENT[::-1])
    error = refused(bench, url_source("/m"))
    assert error.details[:2] == (
        f"expected sha256 {digest(CONTENT)}, 10240 bytes",
        f"actual sha256   {digest(CONTENT[::-1])}, 10240 bytes",
    )
    assert "qnn-forge pin" in error.remedy


def test_a_wrong_announced_size_costs_no_download(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    big = CONTENT * 200
    server.routes["/m"] = fake.sleepy(0.0, big)  # would announce 1000 bytes more than it sends
    error = refused(bench, url_source("/m"))
    assert error.id == "QF301"
    assert f"announced size  {len(big) + 1000}" in error.details


def test_an_unpinned_download_is_bounded(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    policy = replace(PLAIN, unpinned_limit=10239)
    server.routes["/announced"] = fake.file(CONTENT)
    server.routes["/chunked"] = fake.chunked(CONTENT)
    assert refused(bench, url_source("/announced", None, None), policy).id == "QF307"
    assert refused(bench, url_source("/chunked", None, None), policy).id == "QF307"
    assert bench.fetch(url_source("/announced", None, None), replace(policy, unpinned_limit=10240)).size == 10240


def test_a_download_without_end_is_stopped_at_the_bound(
    bench: Bench, server: FakeServer, url_source: UrlSource
) -> None:
    def endless(handler: fake.Handler) -> None:
        handler.head(200, Transfer_Encoding="chunked")
        while True:
            handler.body(b"10000\r\n" + bytes(0x10000) + b"\r\n")

    server.routes["/m"] = endless
    assert refused(bench, url_source("/m")).id == "QF307"
    assert list(bench.downloads.rglob("partial")) == []


def test_a_partial_file_that_nobody_can_continue_is_removed(
    bench: Bench, server: FakeServer, url_source: UrlSource
) -> None:
    server.routes["/m"] = fake.cut(CONTENT, 5000, etag=None)
    assert refused(bench, url_source("/m")).id == "QF306"
    assert list(bench.downloads.rglob("partial*")) == []


def test_a_broken_transfer_goes_on_where_it_stopped(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.in_turn(fake.cut(CONTENT, 4000), fake.cut(CONTENT, 5000), fake.file(CONTENT))
    fetched = bench.fetch(url_source("/m"))
    assert fetched.path.read_bytes() == CONTENT
    assert server.sent == 10240  # no byte twice
    assert [seen.headers.get("range") for seen in server.seen] == [None, "bytes=4000-", "bytes=9000-"]
    assert [seen.headers.get("if-range") for seen in server.seen] == [None, '"v1"', '"v1"']


def test_the_next_run_goes_on_as_well(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    once = replace(PLAIN, attempts=1)
    server.routes["/m"] = fake.in_turn(fake.cut(CONTENT, 4000), fake.file(CONTENT))
    assert refused(bench, url_source("/m"), once).id == "QF306"
    assert bench.fetch(url_source("/m"), once).path.read_bytes() == CONTENT
    assert server.sent == 10240


@pytest.mark.parametrize(
    "second",
    [
        fake.file(CONTENT, etag='"v2"'),  # another version: If-Range makes the server send all of it
        fake.file(CONTENT, ranges=False),
        fake.in_turn(fake.status(416), fake.file(CONTENT)),
        fake.in_turn(fake.status(206, Content_Range="bytes 17-100/10240", ETag='"v1"'), fake.file(CONTENT)),
        fake.in_turn(fake.status(206, Content_Range="bytes 4000-10239/10240", ETag='"v2"'), fake.file(CONTENT)),
    ],
)
def test_a_partial_file_that_does_not_fit_is_thrown_away(
    bench: Bench, server: FakeServer, url_source: UrlSource, second: fake.Route
) -> None:
    wrong = bytes(len(CONTENT))
    server.routes["/m"] = fake.in_turn(fake.cut(wrong, 4000), second)
    assert bench.fetch(url_source("/m")).path.read_bytes() == CONTENT


def test_a_server_that_sends_ranges_in_portions_is_asked_on(
    bench: Bench, server: FakeServer, url_source: UrlSource
) -> None:
    def portion(handler: fake.Handler) -> None:
        begin = 4000
        span = f"bytes {begin}-{begin + 99}/{len(CONTENT)}"
        handler.head(206, Content_Length=100, Content_Range=span, ETag='"v1"')
        handler.body(CONTENT[begin : begin + 100])

    server.routes["/m"] = fake.in_turn(fake.cut(CONTENT, 4000), portion, fake.file(CONTENT))
    assert bench.fetch(url_source("/m")).path.read_bytes() == CONTENT
    assert server.seen[-1].headers["range"] == "bytes=4100-"


def test_faults_that_pass_are_waited_out(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.in_turn(fake.status(503), fake.status(429, Retry_After="0"), fake.file(CONTENT))
    assert bench.fetch(url_source("/m")).size == 10240
    assert len(server.seen) == 3


def test_retry_after_is_obeyed(
    bench: Bench, server: FakeServer, url_source: UrlSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("qnn.sources.https.time.sleep", waits.append)
    server.routes["/m"] = fake.in_turn(fake.status(429, Retry_After="7"), fake.status(500), fake.file(CONTENT))
    bench.fetch(url_source("/m"))
    assert next(wait for wait in waits if wait >= 1) == 7.0  # threads of other tests may sleep for moments too
    assert waits[1] == pytest.approx(0.02)  # the second pause of its own, twice the first


def test_redirects_are_followed_and_checked_at_every_step(
    bench: Bench, server: FakeServer, url_source: UrlSource
) -> None:
    server.routes["/m"] = fake.redirect("/n?x=1", 301)
    server.routes["/n"] = fake.redirect(server.url("/o"), 307)
    server.routes["/o"] = fake.file(CONTENT)
    assert bench.fetch(url_source("/m")).path.name == "m"
    assert [seen.path for seen in server.seen] == ["/m", "/n?x=1", "/o"]


def test_a_chain_of_redirects_ends(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    for number in range(20):
        server.routes[f"/{number}"] = fake.redirect(f"/{number + 1}")
    error = refused(bench, url_source("/0"))
    assert error.id == "QF311"
    assert len(server.seen) == 11


def test_a_redirect_circle_over_two_steps_is_seen(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/a"] = fake.redirect("/b")
    server.routes["/b"] = fake.redirect("/a")
    error = refused(bench, url_source("/a"))
    assert error.id == "QF311"
    assert "circle" in error.message
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    "locator",
    [
        "http://example.org/m.onnx",
        "ftp://example.org/m.onnx",
        "file:///etc/hostname",
        "m.onnx",
        "https://",
        "https://user:pw@example.org/m.onnx",
        "https://example.org/m.onnx#part",
        "https://[::1/m.onnx",
        "",
    ],
)
def test_only_plain_https_addresses_are_used(bench: Bench, locator: str) -> None:
    assert refused(bench, source(SourceKind.URL, locator)).id == "QF320"


def test_silence_and_trickles_time_out(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    hasty = replace(PLAIN, read_timeout=0.2)
    server.routes["/silent"] = fake.sleepy(1.0, CONTENT[:-1000])
    server.routes["/trickle"] = fake.drip(CONTENT, 0.02)
    assert refused(bench, url_source("/silent"), hasty).id == "QF310"
    assert refused(bench, url_source("/trickle"), hasty).id == "QF310"
    assert len(server.seen) == 2


def test_a_slow_but_steady_transfer_is_not_cut(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.drip(CONTENT[:40], 0.01)
    patient = replace(PLAIN, read_timeout=0.1, slowest=1)
    assert bench.fetch(url_source("/m", None, CONTENT[:40]), patient).size == 40


def test_nobody_listening_is_unreachable(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = refused(bench, source(SourceKind.URL, f"http://127.0.0.1:{port}/m"))
    assert error.id == "QF309"
    assert "refused" in error.message.lower()


def test_an_unknown_host_name_is_named(bench: Bench, trusting: Policy) -> None:
    error = refused(bench, source(SourceKind.URL, "https://no-such-host.invalid/m"), trusting)
    assert error.id == "QF309"
    assert "no-such-host.invalid cannot be resolved" in error.message


def test_https_with_a_trusted_certificate(bench: Bench, tls_server: FakeServer, trusting: Policy) -> None:
    tls_server.routes["/m"] = fake.file(CONTENT)
    assert bench.fetch(source(SourceKind.URL, tls_server.url("/m")), trusting).size == 10240


def test_an_untrusted_certificate_is_refused_at_once(bench: Bench, tls_server: FakeServer) -> None:
    tls_server.routes["/m"] = fake.file(CONTENT)
    error = refused(bench, source(SourceKind.URL, tls_server.url("/m")))
    assert error.id == "QF308"
    assert "self-signed" in error.message or "self signed" in error.message
    assert tls_server.seen == []


def test_a_certificate_of_another_host_is_refused(bench: Bench, tls_server: FakeServer, trusting: Policy) -> None:
    with fake.proxying(tls_server) as (proxy, _), pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTPS_PROXY", proxy)
        error = refused(bench, source(SourceKind.URL, "https://evil.example/m"), trusting)
    assert error.id == "QF308"
    assert "evil.example" in error.message


def test_a_server_without_tls_is_refused(bench: Bench, server: FakeServer, trusting: Policy) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    wanted = source(SourceKind.URL, server.url("/m").replace("http://", "https://"))
    assert refused(bench, wanted, trusting).id == "QF308"


def test_https_never_goes_down_to_http(
    bench: Bench, tls_server: FakeServer, server: FakeServer, trusting: Policy
) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    tls_server.routes["/m"] = fake.redirect(server.url("/m"))
    error = refused(bench, source(SourceKind.URL, tls_server.url("/m")), trusting)
    assert error.id == "QF311"
    assert "not https" in error.message
    assert server.seen == []


def test_the_proxy_of_the_environment_is_used(bench: Bench, tls_server: FakeServer, trusting: Policy) -> None:
    tls_server.routes["/m"] = fake.file(CONTENT)
    with fake.proxying(tls_server) as (proxy, asked), pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTPS_PROXY", proxy)
        bench.fetch(source(SourceKind.URL, "https://files.example/m"), trusting)
    assert asked == ["files.example:443"]


def test_a_proxy_that_wants_a_login_is_named(bench: Bench, server: FakeServer, trusting: Policy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        answers: list[bytes] = []

        def answer() -> None:
            client, _ = proxy.accept()
            with client:
                answers.append(client.recv(4096))
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        error = refused(bench, source(SourceKind.URL, "https://files.example/m"), trusting)
        thread.join()
    assert error.id == "QF303"
    assert "HTTPS_PROXY" in error.remedy
    assert answers[0].startswith(b"CONNECT files.example:443")


def test_a_proxy_that_is_gone_is_unreachable(bench: Bench, trusting: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert refused(bench, source(SourceKind.URL, "https://files.example/m"), trusting).id == "QF309"


def test_a_full_disk_goes_through_as_it_is(
    bench: Bench, server: FakeServer, url_source: UrlSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    server.routes["/m"] = fake.file(CONTENT)
    monkeypatch.setattr("qnn.sources.fetch._copy", no_space)
    with pytest.raises(OSError, match="No space left") as caught:
        bench.fetch(url_source("/m"))
    assert caught.value.errno == errno.ENOSPC
    assert bench.left() == []


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """The kernel refuses to let any file grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_half_way_leaves_nothing(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.file(CONTENT)
    with files_at_most(5000), pytest.raises(OSError, match="too large") as while_downloading:
        bench.fetch(url_source("/m"))
    assert while_downloading.value.errno == errno.EFBIG
    assert bench.left() == []
    bench.fetch(url_source("/m"))
    with files_at_most(5000), pytest.raises(OSError, match="too large") as while_copying:
        bench.fetch(url_source("/m"))
    assert while_copying.value.errno == errno.EFBIG
    assert bench.left() == []


def test_asked_again_by_etag_while_unpinned(bench: Bench, server: FakeServer, url_source: UrlSource) -> None:
    server.routes["/m"] = fake.in_turn(fake.file(CONTENT), fake.file(CONTENT), fake.file(CONTENT[::-1], '"v2"'))
    unpinned = url_source("/m", None, None)
    assert bench.fetch(unpinned).sha256 == digest(CONTENT)
    assert bench.fetch(unpinned).sha256 == digest(CONTENT)
    assert server.seen[1].headers["if-none-match"] == '"v1"'
    assert server.sent == 10240
    assert bench.fetch(unpinned).sha256 == digest(CONTENT[::-1])
