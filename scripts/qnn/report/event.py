"""What the event of a finished workflow run says: which run, which commit, which repository. Pure.

GitHub writes the event, so it is not forged. Its texts (branch names, titles) are still anyone's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qnn.errors.report import NotAWorkflowRun
from qnn.report.origin import Origin


@dataclass(frozen=True)
class WorkflowRun:
    """A finished run. `trigger` is the event that started it; `repository` is OWNER/NAME, the one that ran it;

    `head_repository` the one the commit is in (a fork's, often; None when it was deleted). `numbers` are the pull
    requests GitHub names; for a fork's commit it names none.
    """

    repository: str
    trigger: str
    head_sha: str
    head_branch: str | None
    head_repository: str | None
    url: str
    numbers: tuple[int, ...]
    repository_url: str

    @property
    def origin(self) -> Origin:
        """For links: the commit is shown in the repository that ran it, which has the commits of forks too."""
        return Origin(self.head_sha, self.head_branch, self.url, self.repository_url)


def workflow_run(event: dict[str, Any]) -> WorkflowRun:
    """The run of a `workflow_run` event. Raises NotAWorkflowRun (QF923) naming what is not there."""
    run = _of(event, "workflow_run", dict)
    repository = _of(event, "repository", dict)
    head = run.get("head_repository")
    numbers = tuple(_of(item, "number", int) for item in run.get("pull_requests") or () if isinstance(item, dict))
    branch = run.get("head_branch")
    return WorkflowRun(
        repository=_of(repository, "full_name", str),
        trigger=_of(run, "event", str),
        head_sha=_of(run, "head_sha", str),
        head_branch=branch if isinstance(branch, str) else None,
        head_repository=_of(head, "full_name", str) if isinstance(head, dict) else None,
        url=_of(run, "html_url", str),
        numbers=numbers,
        repository_url=_of(repository, "html_url", str),
    )


def _of(found: dict[str, Any], key: str, kind: type[Any]) -> Any:
    value = found.get(key)
    if not isinstance(value, kind):
        raise NotAWorkflowRun(
            f"the event has no {key}", remedy="run this from a workflow with `on: workflow_run` (see docs/reports.md)"
        )
    return value
