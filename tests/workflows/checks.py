"""What every workflow of this repository must be, as a function from its text to what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

_PINNED = re.compile(r"uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
_LOCAL = re.compile(r"uses: \./[\w./-]+$")
_EXPRESSION = "${{"


def faults(text: str) -> list[str]:
    """Everything wrong with one workflow (or composite action)."""
    document = yaml.safe_load(text)
    found = [f"not pinned: {line.strip()}" for line in text.splitlines() if "uses:" in line and not _is_pinned(line)]
    if "jobs" not in document:
        return found + list(_of_steps("action", document["runs"]["steps"]))
    if document.get("permissions") != {}:
        found.append("permissions at the top are not {}")
    if "concurrency" not in document:
        found.append("no concurrency")
    for name, job in document["jobs"].items():
        found += _of_job(name, job)
    if "pull_request" in document[True]:
        found += _of_foreign_code(document)
    return found


def _is_pinned(line: str) -> bool:
    stripped = line.strip().removeprefix("- ")
    return bool(_PINNED.match(stripped) or _LOCAL.match(stripped))


def _of_job(name: str, job: dict[str, Any]) -> Iterator[str]:
    if not isinstance(job.get("permissions"), dict):
        yield f"{name}: no permissions of its own"
    if job.get("secrets"):
        yield f"{name}: hands secrets on"
    if "uses" in job:
        return
    if not isinstance(job.get("timeout-minutes"), int):
        yield f"{name}: no timeout-minutes"
    yield from _of_steps(name, job["steps"])


def _of_steps(name: str, steps: list[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        if _EXPRESSION in step.get("run", ""):
            yield f"{name}: an expression inside run: {step['run']}"
        if "actions/upload-artifact@" in step.get("uses", "") and step["with"].get("overwrite") is not True:
            yield f"{name}: an upload that fails when the job is run again"
        if "actions/checkout@" in step.get("uses", "") and step.get("with", {}).get("persist-credentials") is not False:
            yield f"{name}: checkout keeps its credentials"


def _of_foreign_code(document: dict[str, Any]) -> Iterator[str]:
    """A workflow that runs code of a pull request: no secret, nothing it may write."""
    for name, job in document["jobs"].items():
        if any(value != "read" for value in job["permissions"].values()):
            yield f"{name}: code of a pull request with a token that can write"
    if "secrets." in str(document):
        yield "a secret where code of a pull request runs"
