"""The part of a Hugging Face Hub that a download needs: HEAD and GET of /{repo}/resolve/{revision}/{path}."""

from __future__ import annotations

import hashlib

from tests.sources.fake_server import FakeServer, Handler, Route, file

REPO = "acme/det"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def path_of(name: str, revision: str = COMMIT) -> str:
    """Where the Hub serves a file."""
    return f"/{REPO}/resolve/{revision}/{name}"


def add_file(server: FakeServer, name: str, content: bytes, *, lfs: bool = True, commit: str = COMMIT) -> None:
    """A file in the repository; those in large-file storage have their sha256 as ETag and are redirected."""
    sha256 = hashlib.sha256(content).hexdigest()
    if not lfs:
        server.routes[path_of(name)] = _with_commit(file(content, f'"{sha256[:40]}"'), commit)
        return
    server.routes[f"/blobs/{sha256}"] = file(content, f'"{sha256}"')

    def pointer(handler: Handler) -> None:
        handler.head(
            302,
            Location=server.url(f"/blobs/{sha256}", "localhost"),  # as a storage host: not the Hub's own
            X_Repo_Commit=commit,
            X_Linked_Etag=f'"{sha256}"',
            X_Linked_Size=len(content),
            Content_Length=0,
        )

    server.routes[path_of(name)] = pointer


def missing(code: str, status: int = 404) -> Route:
    """An error as the Hub words it: RepoNotFound, RevisionNotFound, EntryNotFound, GatedRepo."""
    return lambda handler: handler.head(
        status, X_Error_Code=code, X_Error_Message=f"{code} here", X_Repo_Commit=COMMIT, Content_Length=0
    )


def _with_commit(route: Route, commit: str) -> Route:
    def wrapped(handler: Handler) -> None:
        handler.extra["X-Repo-Commit"] = commit
        route(handler)

    return wrapped
