"""A GitHub for tests: releases, assets and tags of one repository, as docs.github.com/rest/releases describes them.

Drafts are unseen but by who may write, an asset's name is taken once, a broken upload leaves an asset of state
"starter", publishing a draft makes its tag. Served on a unix socket (for the real `gh`, by its setting
http_unix_socket) or on a port.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import socketserver
import ssl
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

REPOSITORY = "acme/models"
TOKEN = "ghs_may_write"


@dataclass
class Asset:
    """An uploaded file; `told` is what the server claims of it, when that is not the truth."""

    number: int
    name: str
    content: bytes
    state: str = "uploaded"
    told: dict[str, Any] = field(default_factory=dict)

    def document(self, *, digests: bool) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(self.content).hexdigest()}" if digests and self.state == "uploaded" else None
        return {
            "id": self.number, "name": self.name, "size": len(self.content), "state": self.state, "digest": digest,
        } | self.told  # fmt: skip


@dataclass
class Kept:
    """A release."""

    number: int
    tag: str
    fields: dict[str, Any]
    assets: dict[int, Asset] = field(default_factory=dict)

    @property
    def draft(self) -> bool:
        return bool(self.fields["draft"])

    def files(self) -> dict[str, bytes]:
        """Name → content."""
        return {asset.name: asset.content for asset in self.assets.values()}


@dataclass(frozen=True)
class Trouble:
    """An answer to give in place of the right one to requests that match, `times` times.

    `after`: do what was asked first, and then give that answer. A status of 0 is the right answer.
    """

    method: str
    path: str  # a regular expression
    status: int
    times: int = 1
    headers: tuple[tuple[str, str], ...] = ()
    after: bool = False
    body: str = '{"message": "no"}'


def next_trouble(troubles: list[Trouble], method: str, path: str) -> Trouble | None:
    """The answer that is ordered for such a request, which is then one fewer; None to answer as it should be."""
    for position, trouble in enumerate(troubles):
        if trouble.method == method and re.search(trouble.path, path):
            left = trouble.times - 1
            troubles[position : position + 1] = [replace(trouble, times=left)] if left else []
            return trouble if trouble.status else None
    return None


@dataclass
class FakeReleases:
    """The repository acme/models. `sent` counts whole uploads by name and digest, `wrongs` what GitHub would not have
    been asked: a write to a published release.
    """

    releases: dict[int, Kept] = field(default_factory=dict)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrongs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    digests: bool = True
    damage: Callable[[Asset], None] | None = None
    cut: int | None = None  # bytes after which the next upload's connection breaks
    last: int = 100
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    lock: threading.RLock = field(default_factory=threading.RLock)

    def published(self) -> dict[str, dict[str, bytes]]:
        """Tag → files, of what everybody can see."""
        return {kept.tag: kept.files() for kept in self.releases.values() if not kept.draft}

    def drafts(self) -> dict[str, dict[str, bytes]]:
        """Tag → files, of what nobody can see."""
        return {kept.tag: kept.files() for kept in self.releases.values() if kept.draft}

    def number(self) -> int:
        self.last += 1
        return self.last

    def trouble_after(self, count: int, trouble: Trouble) -> None:
        """Let `count` such requests through first."""
        self.troubles = [replace(trouble, status=0, times=count), trouble]

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        """Status and document (bytes for a download)."""
        root = f"/repos/{REPOSITORY}"
        if path == "/graphql":
            return self._graphql(json.loads(body)["variables"])
        if path.startswith(f"/{REPOSITORY}/releases/download/"):
            tag, _, name = path.removeprefix(f"/{REPOSITORY}/releases/download/").partition("/")
            found = self.published().get(tag, {}).get(name)
            return (404, {"message": "Not Found"}) if found is None else (200, found)
        if not path.startswith(f"{root}/"):
            return 404, {"message": "Not Found"}
        parts = path.removeprefix(f"{root}/").split("/")
        if parts[:3] == ["git", "matching-refs", "tags"]:
            tags = sorted(kept.tag for kept in self.releases.values() if not kept.draft)
            found_tags = [{"ref": f"refs/tags/{tag}"} for tag in tags if tag.startswith("/".join(parts[3:]))]
            return 200, _page(found_tags, query)
        if parts[0] == "releases":
            return self._releases(method, parts[1:], query, body)
        return 404, {"message": "Not Found"}

    def _graphql(self, variables: dict[str, str]) -> tuple[int, Any]:
        if f"{variables['owner']}/{variables['name']}" != REPOSITORY:
            return 200, {"data": {"repository": None}, "errors": [{"type": "NOT_FOUND", "message": "Could not"}]}
        found = [kept for kept in self.releases.values() if kept.tag == variables["tag"]]
        release = {"databaseId": found[0].number, "isDraft": found[0].draft} if found else None
        return 200, {"data": {"repository": {"release": release}}}

    def _releases(self, method: str, parts: list[str], query: dict[str, str], body: bytes) -> tuple[int, Any]:  # noqa: PLR0911
        if not parts and method == "POST":
            fields = json.loads(body)
            kept = Kept(self.number(), fields["tag_name"], fields)
            self.releases[kept.number] = kept
            return 201, self._release(kept)
        if parts[0] == "tags":
            found = [kept for kept in self.releases.values() if kept.tag == unquote(parts[1]) and not kept.draft]
            return (200, self._release(found[0])) if found else (404, {"message": "Not Found"})
        if parts[0] == "assets":
            return self._asset(method, int(parts[1]))
        one = self.releases.get(int(parts[0]))
        if one is None:
            return 404, {"message": "Not Found"}
        if len(parts) == 1:
            return self._update(method, one, body)
        if method == "POST":
            return self._upload(one, query["name"], body)
        return 200, _page([asset.document(digests=self.digests) for asset in one.assets.values()], query)

    def _update(self, method: str, kept: Kept, body: bytes) -> tuple[int, Any]:
        if method == "PATCH":
            fields = json.loads(body)
            if fields.get("draft") is False and kept.draft and kept.tag in self.published():
                return 422, _exists("Release", "tag_name")
            kept.fields |= fields
        return 200, self._release(kept)

    def _asset(self, method: str, number: int) -> tuple[int, Any]:
        for kept in self.releases.values():
            if number in kept.assets:
                if method == "DELETE":
                    if not kept.draft:
                        self.wrongs.append(f"deleted {kept.assets[number].name} of {kept.tag}")
                    del kept.assets[number]
                    return 204, None
                return 200, kept.assets[number].content
        return 404, {"message": "Not Found"}

    def _upload(self, kept: Kept, name: str, content: bytes) -> tuple[int, Any]:
        if not kept.draft:
            self.wrongs.append(f"uploaded {name} to {kept.tag}")
        if any(asset.name == name for asset in kept.assets.values()):
            return 422, _exists("ReleaseAsset", "name")
        asset = Asset(self.number(), name, content)
        self.sent[name, hashlib.sha256(content).hexdigest()] += 1
        if self.damage is not None:
            self.damage(asset)
        kept.assets[asset.number] = asset
        return 201, asset.document(digests=self.digests)

    def broken_upload(self, path: str, name: str) -> None:
        """What a connection that breaks leaves behind."""
        kept = self.releases[int(path.split("/")[5])]
        if not any(asset.name == name for asset in kept.assets.values()):
            asset = Asset(self.number(), name, b"", state="starter")
            kept.assets[asset.number] = asset

    def _release(self, kept: Kept) -> dict[str, Any]:
        return {
            "id": kept.number,
            "tag_name": kept.tag,
            "draft": kept.draft,
            "published_at": None if kept.draft else "2026-11-30T10:00:00Z",
            "upload_url": f"https://uploads.github.com/repos/{REPOSITORY}/releases/{kept.number}/assets{{?name,label}}",
        }


def _page(items: list[Any], query: dict[str, str]) -> list[Any]:
    size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
    return items[(page - 1) * size : page * size]


def _exists(resource: str, name: str) -> dict[str, Any]:
    error = {"resource": resource, "code": "already_exists", "field": name}
    return {"message": "Validation Failed", "errors": [error]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _OnSocket | _OnPort

    def respond(self) -> None:
        github = self.server.github
        url = urlsplit(self.path)
        path, query = unquote(url.path), {name: values[0] for name, values in parse_qs(url.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        upload = self.command == "POST" and path.endswith("/assets")
        wanted = min(length, github.cut) if upload and github.cut is not None else length
        body = self.rfile.read(wanted)
        with github.lock:
            if len(body) < length:
                github.cut = None
                github.broken_upload(path, query["name"])
                self.close_connection = True
                return
            github.requests.append(f"{self.command} {path}")
            status, document, headers = self._decide(path, query, body)
        raw = document if isinstance(document, bytes) else b"" if document is None else json.dumps(document).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(raw)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _decide(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any, Any]:
        github = self.server.github
        trouble = next_trouble(github.troubles, self.command, path)
        if trouble is not None and not trouble.after:
            return trouble.status, trouble.body.encode(), trouble.headers
        token = (self.headers.get("Authorization") or " ").split()[-1:]
        if "/releases/download/" not in path and not (token and token[0] in github.tokens):
            return 401, {"message": "Bad credentials"}, ()
        status, document = github.answer(self.command, path, query, body)
        if trouble is not None:
            return trouble.status, trouble.body.encode(), trouble.headers
        return status, document, ()

    do_GET = do_POST = do_PATCH = do_DELETE = respond  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's signature
        pass

    def address_string(self) -> str:
        return "gh"


class _OnSocket(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    github: FakeReleases

    def handle_error(self, *_: object) -> None:
        """Clients that are killed in the middle are what these tests are about."""


class _OnPort(ThreadingHTTPServer):
    daemon_threads = True
    github: FakeReleases


@contextmanager
def serving(folder: Path, github: FakeReleases | None = None) -> Iterator[FakeReleases]:
    """A GitHub on a socket, and in ``<folder>/gh`` a configuration with which `gh` speaks to it."""
    kept = github or FakeReleases()
    socket = Path(tempfile.mkdtemp(prefix="gh-")) / "gh.sock"  # short: a socket's path has at most 107 characters
    config = folder / "gh"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.yml").write_text(f"version: 1\nhttp_unix_socket: {socket}\n")
    with _OnSocket(str(socket), _Handler) as server:
        server.github = kept
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()
            shutil.rmtree(socket.parent)


@contextmanager
def downloads(github: FakeReleases, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The same GitHub on a port, for clients that download; yields its address (GITHUB_SERVER_URL).

    Over https if there is a context for it.
    """
    with _OnPort(("127.0.0.1", 0), _Handler) as server:
        server.github = github
        server.socket = tls.wrap_socket(server.socket, server_side=True) if tls else server.socket
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def environment(folder: Path, token: str = TOKEN) -> dict[str, str]:
    """Variables with which the real `gh` speaks to the fake in `folder`."""
    return {"GH_CONFIG_DIR": str(folder / "gh"), "GH_TOKEN": token}
