"""As much of GitHub's API as a comment on a pull request needs: one pull request, its comments."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BOT = {"login": "github-actions[bot]", "type": "Bot"}


@dataclass
class GitHub:
    """Pull request 7 of acme/forge, with `head` as its newest commit."""

    head: str
    address: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def get(self, path: str) -> Any:
        """The document at a path."""
        pull = {"number": 7, "state": "open", "head": {"sha": self.head}}
        bare = path.partition("?")[0]
        found = {
            "/repos/acme/forge/pulls/7": pull,
            "/repos/acme/forge/pulls": [pull],
            "/repos/acme/forge/issues/7/comments": self.comments,
        }
        return found.get(bare)

    def write(self, method: str, path: str, body: str) -> dict[str, Any]:
        """A new comment, or another text of an old one."""
        if method == "PATCH":
            comment = next(one for one in self.comments if path.endswith(f"/{one['id']}"))
        else:
            comment = {"id": len(self.comments) + 1, "user": BOT}
            self.comments.append(comment)
        comment["body"] = body
        return comment


@contextmanager
def serve(head: str) -> Iterator[GitHub]:
    """A GitHub on a port of its own."""
    github = GitHub(head)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(github.get(self.path))

        def do_POST(self) -> None:
            self.change()

        def do_PATCH(self) -> None:
            self.change()

        def change(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
            self.answer(github.write(self.command, self.path, body))

        def answer(self, document: Any) -> None:
            github.requests.append(f"{self.command} {self.path.partition('?')[0]}")
            data = json.dumps(document).encode()
            self.send_response(404 if document is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        github.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield github
        finally:
            server.shutdown()
            thread.join()
