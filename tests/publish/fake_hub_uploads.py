"""A Hugging Face Hub for tests that takes uploads: branches, commits, tags and large-file storage of repositories.

As huggingface_hub 1.2 and later ask it (without Xet). Files of `tar.gz` go to large-file storage, others into git. A
commit that names an object which was never sent is refused, as is one on top of another parent than it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.publish.fake_releases import Trouble, next_trouble

TOKEN = "hf_may_write"
DATE = "2026-11-30T10:00:00.000Z"


@dataclass(frozen=True)
class Blob:
    """A file of a commit: its content, whether it is in large-file storage, and the commit that brought it."""

    content: bytes
    lfs: bool
    commit: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def git(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content, usedforsecurity=False).hexdigest()


Tree = dict[str, Blob]


@dataclass
class Repository:
    """Commits by id, in order; branches and tags by name."""

    name: str
    commits: dict[str, Tree] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    mains: list[Tree] = field(default_factory=list)  # every state of main there ever was

    def resolve(self, revision: str) -> str | None:
        commit = self.branches.get(revision) or self.tags.get(revision) or revision
        return commit if commit in self.commits else None

    def main(self) -> dict[str, bytes]:
        """Path → content of what everybody sees."""
        return {path: blob.content for path, blob in self.commits[self.branches["main"]].items()}


@dataclass
class FakeHub:
    """Repositories by name. `sent` counts whole objects that were sent, by sha256."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    requests: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    damage: Callable[[str, Blob], Blob] | None = None
    wrongs: list[str] = field(default_factory=list)
    address: str = ""
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    lock: threading.RLock = field(default_factory=threading.RLock)

    def make(self, name: str) -> Repository:
        """A repository with its first commit, as the web page makes it."""
        first = "0" * 40
        blob = Blob(b"*.tar.* filter=lfs\n", False, first)
        repository = Repository(name, {first: {".gitattributes": blob}}, {"main": first})
        self.repositories[name] = repository
        return repository

    def commit(self, repository: Repository, branch: str, lines: list[dict[str, Any]]) -> tuple[int, Any]:
        """Add a commit of the operations in `lines` to a branch."""
        parent = repository.branches[branch]
        header = next(line["value"] for line in lines if line["key"] == "header")
        if header.get("parentCommit") not in (None, parent):
            return 412, {"error": "A commit has happened since. Please refresh and try again."}
        oid = hashlib.sha1(json.dumps([parent, lines]).encode(), usedforsecurity=False).hexdigest()
        tree = dict(repository.commits[parent])
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                blob = Blob(base64.b64decode(value["content"]), False, oid)
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.objects:
                    return 400, {"error": f"object {value['oid']} was never sent"}
                blob = Blob(self.objects[value["oid"]], True, oid)
            else:
                continue
            path = value["path"]
            if branch == "main" and path != "README.md" and path in tree:
                self.wrongs.append(f"replaced {path}")
            tree[path] = blob if self.damage is None else self.damage(path, blob)
        repository.commits[oid] = tree
        repository.branches[branch] = oid
        if branch == "main":
            repository.mains.append(tree)
        return 200, {"commitOid": oid, "commitUrl": f"{self.address}/{repository.name}/commit/{oid}", "success": True}


def _entry(path: str, blob: Blob, *, expand: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(blob.content), "oid": blob.git}
    if blob.lfs:
        entry["lfs"] = {"oid": blob.sha256, "size": len(blob.content), "pointerSize": 130}
    if expand:
        entry["lastCommit"] = {"id": blob.commit, "title": "t", "date": DATE}
    return entry


def _refs(kind: str, names: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": oid} for name, oid in names.items()]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    @property
    def hub(self) -> FakeHub:
        return self.server.hub

    def respond(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        if len(body) < int(self.headers.get("Content-Length") or 0):
            self.close_connection = True
            return
        with self.hub.lock:
            self.hub.requests.append(f"{self.command} {unquote(url.path)}")
            status, document, headers = self._decide(unquote(url.path), body)
        raw = document if isinstance(document, bytes) else b"" if document is None else json.dumps(document).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(raw)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _chunks(self) -> bytes:
        out = b""
        while size := int(self.rfile.readline(), 16):
            out += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return out

    def _decide(self, path: str, body: bytes) -> tuple[int, Any, dict[str, str]]:
        trouble = next_trouble(self.hub.troubles, self.command, path)
        if trouble is not None and not trouble.after:
            return trouble.status, trouble.body.encode(), dict(trouble.headers)
        found = self._answer(path, body)
        if trouble is not None:
            return trouble.status, trouble.body.encode(), dict(trouble.headers)
        return found

    def _answer(self, path: str, body: bytes) -> tuple[int, Any, dict[str, str]]:
        if path.startswith("/storage/"):  # signed addresses: without a token
            return self._storage(path, body)
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if given and given not in self.hub.tokens:
            message = "Invalid credentials in Authorization header"
            return 401, {"error": message}, {"X-Error-Message": message}
        if path == "/api/validate-yaml":
            front = json.loads(body)["content"].split("---\n")[1]
            assert yaml.safe_load(front)["license"]
            return 200, {"errors": [], "warnings": []}, {}
        found = re.fullmatch(r"(?:/api/models)?/([^/]+/[^/]+?)(\.git/info/lfs/objects/batch|/.*)?", path)
        repository = self.hub.repositories.get(found[1]) if found else None
        if found is None or repository is None:
            return 404, {"error": "no"}, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
        if self.command not in ("GET", "HEAD") and not given and not path.endswith("/paths-info/main"):
            return 401, {"error": "no"}, {"X-Error-Message": "Invalid username or password."}
        return self._repository(repository, found[2] or "", body)

    def _storage(self, path: str, body: bytes) -> tuple[int, Any, dict[str, str]]:
        oid = path.rpartition("/")[2]
        if self.command == "PUT":
            if hashlib.sha256(body).hexdigest() != oid:
                return 422, {"error": "not the object"}, {}
            self.hub.objects[oid] = body
            self.hub.sent[oid] += 1
        return 200, None, {}

    def _repository(self, repository: Repository, rest: str, body: bytes) -> tuple[int, Any, dict[str, str]]:  # noqa: PLR0911 - one a request
        verb, _, argument = rest.removeprefix("/").partition("/")
        if verb == ".git" or rest.startswith(".git"):
            return self._batch(json.loads(body))
        if verb == "refs":
            branches, tags = _refs("heads", repository.branches), _refs("tags", repository.tags)
            return 200, {"branches": branches, "tags": tags, "converts": []}, {}
        if verb == "branch":
            return self._branch(repository, argument, body)
        if verb == "tag":
            name = json.loads(body)["tag"]
            target = repository.resolve(argument)
            if target is None or name in repository.tags:
                return 409, {"error": "tag exists"}, {}
            repository.tags[name] = target
            return 200, None, {}
        if verb in ("tree", "paths-info", "preupload", "resolve", "commit", "revision", ""):
            return self._contents(repository, verb or "revision", argument or "main", body)
        return 404, None, {}

    def _branch(self, repository: Repository, name: str, body: bytes) -> tuple[int, Any, dict[str, str]]:
        if self.command == "DELETE":
            repository.branches.pop(name)
            return 200, None, {}
        if name in repository.branches:
            return 409, {"error": "branch exists"}, {}
        start = json.loads(body).get("startingPoint", "main") if body else "main"
        repository.branches[name] = repository.resolve(start) or ""
        return 200, None, {}

    def _batch(self, asked: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        objects = []
        for one in asked["objects"]:
            there = len(self.hub.objects.get(one["oid"], b"\0")) == one["size"] and one["oid"] in self.hub.objects
            send = {"upload": {"href": f"{self.hub.address}/storage/{one['oid']}"}}
            objects.append({**one} if there else {**one, "actions": send})
        return 200, {"transfer": "basic", "objects": objects}, {}

    def _contents(  # noqa: PLR0911 - one a request
        self, repository: Repository, verb: str, argument: str, body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        names = sorted([*repository.branches, *repository.tags, *repository.commits], key=len, reverse=True)
        name = next((one for one in names if argument == one or argument.startswith(f"{one}/")), None)
        if name is None:
            return 404, {"error": "no revision"}, {"X-Error-Code": "RevisionNotFound"}
        path = argument.removeprefix(name).removeprefix("/")
        commit = repository.resolve(name) or ""
        tree = repository.commits[commit]
        if verb == "commit":
            status, document = self.hub.commit(repository, name, [json.loads(line) for line in body.splitlines()])
            return status, document, {}
        if verb == "tree":
            below = [(one, blob) for one, blob in sorted(tree.items()) if one.startswith(f"{path}/")]
            if not below:
                return 404, {"error": "no entry"}, {"X-Error-Code": "EntryNotFound"}
            return 200, [_entry(one, blob, expand=False) for one, blob in below], {}
        if verb == "paths-info":
            asked = parse_qs(body.decode())["paths"]
            return 200, [_entry(one, tree[one], expand=True) for one in asked if one in tree], {}
        if verb == "preupload":
            return 200, {"files": [self._mode(tree, one) for one in json.loads(body)["files"]]}, {}
        if verb == "revision":
            return 200, {"id": "x", "sha": commit, "tags": [], "siblings": []}, {}
        return self._resolve(commit, tree.get(path))

    def _mode(self, tree: Tree, file: dict[str, Any]) -> dict[str, Any]:
        there = tree.get(file["path"])
        mode = "lfs" if file["path"].endswith(".tar.gz") else "regular"
        oid = None if there is None else there.sha256 if there.lfs else there.git
        return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid}

    def _resolve(self, commit: str, blob: Blob | None) -> tuple[int, Any, dict[str, str]]:
        if blob is None:
            return 404, {"error": "no entry"}, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}
        etag = blob.sha256 if blob.lfs else blob.git
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": commit}
        if blob.lfs:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(blob.content))}
        return 200, blob.content, headers

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = respond  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's signature
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: FakeHub

    def handle_error(self, *_: object) -> None:
        """Clients that are killed in the middle are what these tests are about."""


@contextmanager
def serving(hub: FakeHub | None = None, tls: ssl.SSLContext | None = None) -> Iterator[FakeHub]:
    """A Hub on a port of its own, over https if there is a context for it."""
    kept = hub or FakeHub()
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.hub = kept
        kept.address = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        server.socket = tls.wrap_socket(server.socket, server_side=True) if tls else server.socket
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()


def environment(hub: FakeHub, home: str, token: str = TOKEN) -> dict[str, str]:
    """Variables with which huggingface_hub in another process speaks to the fake."""
    return {
        "HF_ENDPOINT": hub.address,
        "HF_TOKEN": token,
        "HF_HOME": home,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
