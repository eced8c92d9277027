"""A web server with faults to order, over http or https, and a proxy that brings any host name to it."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOSTS = ("localhost", "github.com", "storage.example", "files.example")


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]  # by lower-case name


class Handler(BaseHTTPRequestHandler):
    """Gives each request to the route of its path, which answers as it likes."""

    protocol_version = "HTTP/1.1"
    server: _Http

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.extra: dict[str, object] = {}  # headers for whatever this answer is
        self.seen = Seen(self.command, self.path, headers)
        self.server.owner.seen.append(self.seen)
        route = self.server.owner.routes.get(self.path.partition("?")[0], status(404))
        try:
            route(self)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def head(self, code: int, **headers: object) -> None:
        """Status line and headers; underscores in names become hyphens."""
        self.send_response(code)
        for name, value in {**self.extra, **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def body(self, data: bytes) -> None:
        """Body bytes, counted."""
        if self.command == "HEAD":
            return
        self.server.owner.sent += len(data)  # before the client can know that all of it came
        self.wfile.write(data)

    def hang_up(self) -> None:
        """Cut the connection."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


Route = Callable[[Handler], None]


@dataclass
class FakeServer:
    """Routes by path, what was asked, and how many body bytes were sent."""

    port: int
    scheme: str
    routes: dict[str, Route] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    sent: int = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


class _Http(ThreadingHTTPServer):
    owner: FakeServer
    tls: ssl.SSLContext | None = None
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that go away in the middle are what these tests are about."""

    def finish_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        assert isinstance(request, socket.socket)
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        try:
            secure = self.tls.wrap_socket(request, server_side=True)
        except (ssl.SSLError, ConnectionResetError):
            return  # a client that does not trust us
        super().finish_request(secure, client_address)


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[FakeServer]:
    """A server on a free port of 127.0.0.1."""
    server = _Http(("127.0.0.1", 0), Handler)
    server.tls = tls
    server.owner = FakeServer(server.server_address[1], "http" if tls is None else "https")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.owner
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def file(content: bytes, etag: str | None = '"v1"', *, ranges: bool = True) -> Route:
    """A well-behaved file: ETag, If-None-Match, Range with If-Range."""

    def route(handler: Handler) -> None:
        asked = handler.seen.headers
        tag = {} if etag is None else {"ETag": etag}
        if etag is not None and asked.get("if-none-match") == etag:
            handler.head(304, **tag)
            return
        found = re.fullmatch(r"bytes=(\d+)-", asked.get("range", ""))
        if ranges and found and asked.get("if-range", etag) == etag:
            begin = int(found[1])
            if begin >= len(content):
                handler.head(416, Content_Range=f"bytes */{len(content)}", Content_Length=0)
                return
            span = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            handler.head(206, Content_Length=len(content) - begin, Content_Range=span, **tag)
            handler.body(content[begin:])
            return
        handler.head(200, Content_Length=len(content), **tag)
        handler.body(content)

    return route


def cut(content: bytes, after: int, etag: str | None = '"v1"') -> Route:
    """Announces everything (left) and hangs up `after` bytes."""

    def route(handler: Handler) -> None:
        found = re.fullmatch(r"bytes=(\d+)-", handler.seen.headers.get("range", ""))
        begin = int(found[1]) if found else 0
        tag = {} if etag is None else {"ETag": etag}
        if found:
            span = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            handler.head(206, Content_Length=len(content) - begin, Content_Range=span, **tag)
        else:
            handler.head(200, Content_Length=len(content), **tag)
        handler.body(content[begin : begin + after])
        handler.hang_up()

    return route


def chunked(content: bytes) -> Route:
    """No Content-Length: chunks of 1000 bytes."""

    def route(handler: Handler) -> None:
        handler.head(200, Transfer_Encoding="chunked")
        for begin in range(0, len(content), 1000):
            piece = content[begin : begin + 1000]
            handler.body(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        handler.body(b"0\r\n\r\n")

    return route


def status(code: int, **headers: object) -> Route:
    """An empty answer."""
    return lambda handler: handler.head(code, **{"Content_Length": 0, **headers})


def redirect(location: str, code: int = 302) -> Route:
    """A redirect."""
    return status(code, Location=location)


def sleepy(seconds: float = 5.0, content: bytes = b"") -> Route:
    """Sends a beginning, then nothing for a while."""

    def route(handler: Handler) -> None:
        handler.head(200, Content_Length=len(content) + 1000, ETag='"v1"')
        handler.body(content)
        handler.wfile.flush()
        time.sleep(seconds)
        handler.hang_up()

    return route


def drip(content: bytes, pause: float) -> Route:
    """One byte at a time."""

    def route(handler: Handler) -> None:
        handler.head(200, Content_Length=len(content))
        for byte in content:
            handler.body(bytes([byte]))
            handler.wfile.flush()
            time.sleep(pause)

    return route


def hangs_up(handler: Handler) -> None:
    """No answer at all."""
    handler.hang_up()


def in_turn(*routes: Route) -> Route:
    """The first request gets the first route, and so on; the last one stays."""
    left = list(routes)

    def route(handler: Handler) -> None:
        current = left.pop(0) if len(left) > 1 else left[0]
        current(handler)

    return route


def slow(route: Route, seconds: float) -> Route:
    """The same, later."""

    def later(handler: Handler) -> None:
        time.sleep(seconds)
        route(handler)

    return later


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate and its key for 127.0.0.1 and HOSTS."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    names = ",".join(["IP:127.0.0.1", *(f"DNS:{host}" for host in HOSTS)])
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=fake", "-addext", f"subjectAltName={names}"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


@contextmanager
def proxying(target: FakeServer) -> Iterator[tuple[str, list[str]]]:
    """An http proxy that tunnels every CONNECT to `target`; yields its URL and the list of hosts asked for."""
    asked: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def serve(client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(4096)
            if not data:
                return
            head += data
        asked.append(head.split()[1].decode())
        upstream = socket.create_connection(("127.0.0.1", target.port))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        threading.Thread(target=pump, args=(upstream, client), daemon=True).start()
        pump(client, upstream)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.close()
