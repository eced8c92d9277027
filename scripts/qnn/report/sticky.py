"""The one comment on a pull request that is edited in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from qnn.errors.report import NoPullRequest
from qnn.report.comment import MARKER
from qnn.report.event import WorkflowRun

# Who comments with a workflow's own token. Anyone can write the marker into a comment; nobody else has this name.
BOT = "github-actions[bot]"
_REMEDY = "nothing, when the pull request was closed or has a newer commit: the run of that commit comments"


class Repository(Protocol):
    """What is needed of GitHub (qnn.report.github.GitHub)."""

    def pull(self, number: int) -> dict[str, Any] | None:
        """A pull request, or None."""

    def pulls_from(self, owner: str, branch: str) -> Iterator[dict[str, Any]]:
        """Open pull requests from a branch."""

    def comments(self, number: int) -> Iterator[dict[str, Any]]:
        """Comments, oldest first."""

    def create_comment(self, number: int, body: str) -> None:
        """A new comment."""

    def edit_comment(self, comment: int, body: str) -> bool:
        """Another text for a comment; False when it is gone."""


def pull_numbers(github: Repository, run: WorkflowRun) -> tuple[int, ...]:
    """The open pull requests whose newest commit the run was for. Raises NoPullRequest (QF921) and QF922.

    GitHub's event names the numbers for branches of the repository itself; for a fork they are looked up by the fork's
    owner and branch. Either way only what has this very commit as its head now is taken: a run that was overtaken by a
    push must not write over the newer report.
    """
    found = [pull for pull in (github.pull(number) for number in run.numbers) if pull is not None]
    if not found and run.head_repository is not None and run.head_branch is not None:
        owner = run.head_repository.partition("/")[0]
        found = list(github.pulls_from(owner, run.head_branch))
    numbers = sorted({pull["number"] for pull in found if _is_of(pull, run)})
    if not numbers:
        raise NoPullRequest(f"no open pull request has commit {run.head_sha[:12]} as its newest", remedy=_REMEDY)
    return tuple(numbers)


def put_comment(github: Repository, number: int, body: str) -> str:
    """Edit our comment or make it; says in a word what was done: kept, edited or created. Raises GitHubRefused."""
    own = next((comment for comment in github.comments(number) if _is_ours(comment)), None)
    if own is not None:
        if _same(own["body"], body):
            return "kept"
        if github.edit_comment(own["id"], body):
            return "edited"
    github.create_comment(number, body)
    return "created"


def _is_of(pull: dict[str, Any], run: WorkflowRun) -> bool:
    """Open, its newest commit the run's, and from the run's repository where GitHub still knows which that is."""
    head = pull.get("head") or {}
    source = (head.get("repo") or {}).get("full_name")
    same = source is None or run.head_repository is None or source == run.head_repository
    return (
        same and pull.get("state") == "open" and head.get("sha") == run.head_sha and isinstance(pull.get("number"), int)
    )


def _is_ours(comment: dict[str, Any]) -> bool:
    user = comment.get("user") or {}
    body = comment.get("body")
    return user.get("login") == BOT and user.get("type") == "Bot" and isinstance(body, str) and body.startswith(MARKER)


def _same(one: str, other: str) -> bool:
    """GitHub keeps line breaks as CRLF sometimes, and cuts blanks at the end."""
    return one.replace("\r\n", "\n").strip() == other.strip()
