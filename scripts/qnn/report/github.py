"""The few requests to GitHub's REST API that a sticky comment needs. The only module here that talks to a network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from qnn.errors.report import GitHubRefused

if TYPE_CHECKING:
    import httpx

_TRIES = 4
_PAGES = 50
_LONGEST_WAIT = 60.0
_TIMEOUT = 30.0
_REMEDY = "check the job's `permissions: {pull-requests: write}` and GITHUB_TOKEN; for 5xx run the job again"


class GitHub:
    """A session with one repository's API. `sleep` waits some seconds (tests give another)."""

    def __init__(self, api: str, repository: str, token: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        import httpx  # noqa: PLC0415 - start-up

        self._sleep = sleep
        self._origin = urlsplit(api)[:2]
        self._root = f"{api.rstrip('/')}/repos/{repository}"
        self._client = httpx.Client(
            timeout=_TIMEOUT,
            follow_redirects=False,  # the token must not travel to another host
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {token}",
                "User-Agent": "qnn-forge",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )

    def __enter__(self) -> GitHub:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    def pull(self, number: int) -> dict[str, Any] | None:
        """A pull request, or None when there is none of that number. Raises GitHubRefused (QF922)."""
        answer = self._ask("GET", f"{self._root}/pulls/{number}", missing=True)
        return None if answer is None else _object(answer)

    def pulls_from(self, owner: str, branch: str) -> Iterator[dict[str, Any]]:
        """The open pull requests from an owner's branch. Raises GitHubRefused (QF922)."""
        parameters = {"state": "open", "head": f"{owner}:{branch}"}
        return self._pages(f"{self._root}/pulls", parameters)

    def comments(self, number: int) -> Iterator[dict[str, Any]]:
        """The comments on a pull request, oldest first. Raises GitHubRefused (QF922)."""
        return self._pages(f"{self._root}/issues/{number}/comments", {})

    def create_comment(self, number: int, body: str) -> None:
        """A new comment on a pull request. Raises GitHubRefused (QF922)."""
        self._ask("POST", f"{self._root}/issues/{number}/comments", body=body)

    def edit_comment(self, comment: int, body: str) -> bool:
        """Another text for a comment; False when the comment is gone. Raises GitHubRefused (QF922)."""
        return self._ask("PATCH", f"{self._root}/issues/comments/{comment}", body=body, missing=True) is not None

    def _pages(self, url: str, parameters: dict[str, str]) -> Iterator[dict[str, Any]]:
        answer = self._ask("GET", url, parameters={**parameters, "per_page": "100"})
        for _ in range(_PAGES):
            assert answer is not None
            yield from _list(answer)
            following = answer.links.get("next", {}).get("url")
            if following is None:
                return
            if urlsplit(following)[:2] != self._origin:
                raise GitHubRefused(f"GET {url}: the next page is on another host", remedy=_REMEDY)
            answer = self._ask("GET", following)

    def _ask(
        self,
        method: str,
        url: str,
        *,
        parameters: dict[str, str] | None = None,
        body: str | None = None,
        missing: bool = False,
    ) -> httpx.Response | None:
        """The answer; None for a 404 when something may be missing. What may pass is asked again a few times."""
        import httpx  # noqa: PLC0415

        content = None if body is None else {"body": body}
        said = ""
        for tried in range(_TRIES):
            try:
                answer = self._client.request(method, url, params=parameters, json=content)
            except httpx.TransportError as error:
                # A comment that was sent may have been made: asking again could make a second one.
                said = f"{type(error).__name__}: {error}"
                if method == "POST" and not isinstance(error, httpx.ConnectError):
                    break
                wait = 2.0**tried
            else:
                if answer.is_success:
                    return answer
                if missing and answer.status_code == httpx.codes.NOT_FOUND:
                    return None
                said = f"{answer.status_code} {_message(answer)}"
                pause = _pause(answer, tried)
                if pause is None or (method == "POST" and answer.is_server_error):
                    break
                wait = pause
            if tried + 1 < _TRIES:
                self._sleep(min(wait, _LONGEST_WAIT))
        raise GitHubRefused(f"{method} {urlsplit(url).path}: {said}", remedy=_REMEDY)


def _pause(answer: httpx.Response, tried: int) -> float | None:
    """Seconds to wait before asking again, or None when asking again changes nothing."""
    after = answer.headers.get("retry-after", "")
    limited = answer.status_code == 429 or (answer.status_code == 403 and bool(after))
    if not limited and not answer.is_server_error:
        return None
    return float(after) if after.isdigit() else 2.0**tried


def _message(answer: httpx.Response) -> str:
    """GitHub's own words, on one line."""
    try:
        document = answer.json()
    except ValueError:
        document = None
    said = document.get("message") if isinstance(document, dict) else None
    return " ".join(str(said or answer.reason_phrase).split())[:300]


def _object(answer: httpx.Response) -> dict[str, Any]:
    document = _json(answer)
    if not isinstance(document, dict):
        raise GitHubRefused("GitHub's answer is not an object", remedy=_REMEDY)
    return document


def _list(answer: httpx.Response) -> list[dict[str, Any]]:
    document = _json(answer)
    if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
        raise GitHubRefused("GitHub's answer is not a list", remedy=_REMEDY)
    return document


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise GitHubRefused("GitHub's answer is not JSON", remedy=_REMEDY) from None
