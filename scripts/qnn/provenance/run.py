"""Who built: a run of a GitHub workflow, or a person's own machine, which proves nothing and says so."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

LOCAL_BUILDER = "https://github.com/qnn-forge/qnn-forge/blob/main/docs/provenance.md#local"


@dataclass(frozen=True)
class Workflow:
    """A run of a workflow: its repository's URL, the workflow's path in it, the git ref and full commit it ran from,
    the URL of this attempt, what set it off, and what kind of machine ran it (github-hosted, self-hosted)."""

    repository: str
    path: str
    ref: str
    commit: str
    invocation: str
    event: str
    runner: str


@dataclass(frozen=True)
class Run:
    """What built: `builder` is an URI; `workflow` is None for a local build."""

    builder: str
    workflow: Workflow | None


LOCAL = Run(LOCAL_BUILDER, None)


def run_from_environment(environment: Mapping[str, str] = os.environ) -> Run:
    """The run that this process is part of, from the variables that GitHub sets for every step; LOCAL elsewhere.

    Source: docs.github.com, "Default environment variables". A build that cannot name all of its workflow claims
    none of it: LOCAL too.
    """
    value = environment.get
    server, repository, number = value("GITHUB_SERVER_URL"), value("GITHUB_REPOSITORY"), value("GITHUB_RUN_ID")
    # owner/name/.github/workflows/release.yaml@refs/tags/v1
    named, _, ref = value("GITHUB_WORKFLOW_REF", "").partition("@")
    path = named.removeprefix(f"{repository}/")
    commit = value("GITHUB_SHA")
    if value("GITHUB_ACTIONS") != "true" or not (server and repository and number and named and ref and commit):
        return LOCAL
    invocation = f"{server}/{repository}/actions/runs/{number}/attempts/{value('GITHUB_RUN_ATTEMPT') or '1'}"
    return Run(
        builder=f"{server}/{named}@{ref}",
        workflow=Workflow(
            repository=f"{server}/{repository}",
            path=path,
            ref=ref,
            commit=commit,
            invocation=invocation,
            event=value("GITHUB_EVENT_NAME") or "unknown",
            runner=value("RUNNER_ENVIRONMENT") or "unknown",
        ),
    )
