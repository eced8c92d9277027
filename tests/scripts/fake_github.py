"""A GitHub for tests: pull requests and their comments over HTTP, with the refusals of the real one.

Answers as docs.github.com/rest says of "list comments" (pages, Link header), "create" and "update an issue comment",
"list" and "get a pull request": 401 without a token, 403 for a token that may only read, 404 for what is not there or
not visible, 422 for an empty or too long body. `failures` holds answers to give first, one a request.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_writer"
READER = "ghs_reader"
BOT = {"login": "github-actions[bot]", "type": "Bot"}
LONGEST = 65_536


@dataclass
class FakeGitHub:
    """One repository. `pages_elsewhere` makes Link headers point at another host."""

    repository: str = "acme/models"
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    pages_elsewhere: bool = False
    address: str = ""

    def pull(self, number: int, sha: str, *, state: str = "open", head: str = "acme:topic") -> None:
        """A pull request from OWNER:BRANCH; the owner's repository has the same name as this one."""
        owner = head.partition(":")[0]
        repo = {"full_name": f"{owner}/{self.repository.partition('/')[2]}"}
        self.pulls[number] = {"number": number, "state": state, "head": {"sha": sha, "label": head, "repo": repo}}

    def comment(self, number: int, body: str, user: dict[str, str] | None = None) -> int:
        """A comment that is there already; gives its id."""
        new = 1000 + len(self.comments)
        self.comments[new] = {"id": new, "issue": number, "body": body, "user": user or BOT}
        return new

    def bodies(self, number: int) -> list[str]:
        """The texts of a pull request's comments, oldest first."""
        return [comment["body"] for comment in self.comments.values() if comment["issue"] == number]

    def answer(self, method: str, target: str, token: str | None, body: Any) -> tuple[int, Any, dict[str, str]]:
        """Status, document and headers for one request."""
        url = urlsplit(target)
        self.requests.append(f"{method} {url.path}")
        if self.failures:
            status, headers = self.failures.pop(0)
            return status, {"message": f"failed with {status}"}, headers
        if token not in (TOKEN, READER):
            return 401, {"message": "Bad credentials"}, {}
        root = f"/repos/{self.repository}"
        if not url.path.startswith(f"{root}/"):
            return 404, {"message": "Not Found"}, {}
        path = url.path.removeprefix(root)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if method == "GET":
            return self._read(path, query, f"{self.address}{url.path}")
        if token == READER:
            return 403, {"message": "Resource not accessible by integration"}, {}
        return self._write(method, path, body)

    def _read(self, path: str, query: dict[str, str], url: str) -> tuple[int, Any, dict[str, str]]:
        if path == "/pulls":
            found = [
                pull
                for pull in self.pulls.values()
                if pull["state"] == query.get("state", "open")
                and query.get("head", pull["head"]["label"]) == pull["head"]["label"]
            ]
            return self._page(found, query, url)
        if match := re.fullmatch(r"/pulls/(\d+)", path):
            pull = self.pulls.get(int(match[1]))
            return (404, {"message": "Not Found"}, {}) if pull is None else (200, pull, {})
        if match := re.fullmatch(r"/issues/(\d+)/comments", path):
            return self._page([item for item in self.comments.values() if item["issue"] == int(match[1])], query, url)
        return 404, {"message": "Not Found"}, {}

    def _page(self, items: list[Any], query: dict[str, str], url: str) -> tuple[int, Any, dict[str, str]]:
        size, page = min(int(query.get("per_page", "30")), 100), int(query.get("page", "1"))
        shown = items[(page - 1) * size : page * size]
        if page * size >= len(items):
            return 200, shown, {}
        if self.pages_elsewhere:
            url = url.replace("127.0.0.1", "localhost")
        return 200, shown, {"Link": f'<{url}?per_page={size}&page={page + 1}>; rel="next", <{url}>; rel="first"'}

    def _write(self, method: str, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        text = body.get("body") if isinstance(body, dict) else None
        if not isinstance(text, str) or not text or len(text) > LONGEST:
            return 422, {"message": "Validation Failed"}, {}
        posted = re.fullmatch(r"/issues/(\d+)/comments", path)
        if method == "POST" and posted is not None and int(posted[1]) in self.pulls:
            return 201, self.comments[self.comment(int(posted[1]), text)], {}
        patched = re.fullmatch(r"/issues/comments/(\d+)", path)
        if method == "PATCH" and patched is not None and int(patched[1]) in self.comments:
            return self._edit(self.comments[int(patched[1])], text)
        return 404, {"message": "Not Found"}, {}

    def _edit(self, comment: dict[str, Any], text: str) -> tuple[int, Any, dict[str, str]]:
        if comment["user"] != BOT:
            return 403, {"message": "Resource not accessible by integration"}, {}
        comment["body"] = text
        return 200, comment, {}


@contextmanager
def serve(github: FakeGitHub) -> Iterator[FakeGitHub]:
    """The fake on a port of this machine; `address` is what GITHUB_API_URL should be."""

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            given = self.headers.get("Authorization", "")
            token = given.removeprefix("Bearer ") if given.startswith("Bearer ") else None
            status, document, headers = github.answer(self.command, self.path, token, body)
            raw = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(raw)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PATCH = do_DELETE = _respond  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's signature
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    github.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield github
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
