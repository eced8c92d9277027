"""Where a report comes from, as far as links and the head of a comment need it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qnn.report.escape import url_path

_RUN = re.compile(r"(https?://[^/\s]+/[^/\s]+/[^/\s]+)/actions/runs/\d+.*")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Origin:
    """`commit` is the full hash, `repository_url` the web page of the repository the commit is in."""

    commit: str | None = None
    branch: str | None = None
    run_url: str | None = None
    repository_url: str | None = None

    @property
    def commit_url(self) -> str | None:
        """The page of the commit."""
        if self.repository_url is None or self.commit is None or not _COMMIT.fullmatch(self.commit):
            return None
        return f"{self.repository_url}/commit/{self.commit}"

    @property
    def artifacts_url(self) -> str | None:
        """Where the run's page lists its artefacts."""
        return None if self.run_url is None else f"{self.run_url}#artifacts"

    def file_url(self, path: str, line: int | None) -> str | None:
        """The page of a file at the commit. The path is anything."""
        if self.commit_url is None or path.startswith("/") or ".." in path.split("/"):
            return None
        anchor = "" if line is None else f"#L{line}"
        return f"{self.repository_url}/blob/{self.commit}/{url_path(path)}{anchor}"


def origin_of(commit: str | None, run_url: str | None) -> Origin:
    """The origin that a run's page tells: https://github.com/OWNER/NAME/actions/runs/N."""
    found = _RUN.fullmatch(run_url) if run_url is not None else None
    return Origin(commit=commit, run_url=run_url, repository_url=found[1] if found else None)
