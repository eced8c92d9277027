"""comment.yaml, run: an artifact of another run becomes the one comment of the pull request."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.conftest import ROOT, Act, Done
from tests.workflows.fake_github import GitHub, serve

COMMIT = "1" * 40
EVENT = {
    "action": "completed",
    "repository": {"full_name": "acme/forge", "html_url": "https://github.com/acme/forge"},
    "workflow_run": {
        "id": 4711,
        "event": "pull_request",
        "head_sha": COMMIT,
        "head_branch": "$(touch pwned)",
        "head_repository": {"full_name": "acme/forge"},
        "html_url": "https://github.com/acme/forge/actions/runs/4711",
        "pull_requests": [{"number": 7}],
    },
}


@pytest.fixture
def github() -> Iterator[GitHub]:
    with serve(COMMIT) as server:
        yield server


@pytest.fixture
def artifact(tmp_path: Path, act: Act, github: GitHub) -> Path:
    """The folder of the artifact that run 4711 left."""
    folder = tmp_path / "runs" / "4711" / "report-0"
    folder.mkdir(parents=True)
    act.environment |= {"FAKE_RUNS": str(tmp_path / "runs"), "GITHUB_API_URL": github.address}
    return folder


def report(name: str, folder: Path) -> str:
    """What `qnn-forge report --format json` makes of a build of the model `name`."""
    target = {
        "name": name, "model": name, "version": "1.0", "bucket": "s16", "precision": "fp16", "soc": "SM8650",
        "verdict": "ok", "reused": False, "seconds": 1.0, "folder": None, "archive": None, "sha256": None,
        "graphs": [], "error": None,
    }  # fmt: skip
    results = folder / f"{name}.json"
    results.write_text(json.dumps({"schema": 1, "out": "dist", "targets": [target], "skipped": []}))
    done = subprocess.run(
        [sys.executable, "-m", "qnn.cli", "report", "--format=json", str(results)],
        env={"PYTHONPATH": str(ROOT / "scripts")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def run(act: Act, **fields: Any) -> Done:
    """The workflow, with the token it would have."""
    event = {**EVENT, "workflow_run": {**EVENT["workflow_run"], **fields}}  # type: ignore[dict-item]
    return act.run("comment", "workflow_run", event, "-s", "GITHUB_TOKEN=canary")


@pytest.mark.slow
def test_one_comment_is_made_edited_and_kept_from_a_bad_artifact(
    act: Act, artifact: Path, github: GitHub, tmp_path: Path
) -> None:
    (artifact / "report.json").write_text(report("toy", tmp_path))
    assert run(act).code == 0
    assert [comment["id"] for comment in github.comments] == [1]
    assert "toy" in github.comments[0]["body"]

    (artifact / "report.json").write_text(report("other", tmp_path))
    assert run(act).code == 0
    assert [comment["id"] for comment in github.comments] == [1], "edited in place"
    good = github.comments[0]["body"]
    assert "other" in good

    (artifact / "report.json").write_text(json.dumps({"schema": 99, "kind": "qnn-forge-report"}))
    done = run(act)
    assert done.code == 0
    assert "the comment stays as it was" in done.log
    assert github.comments[0]["body"] == good
    assert not list(act.folder.parent.rglob("pwned"))


@pytest.mark.parametrize(
    "text", ["not JSON", "[]", '{"schema": 1}', " " * (64 << 20)], ids=["text", "list", "key", "big"]
)
def test_the_script_leaves_the_old_comment_and_says_why(
    tmp_path: Path, artifact: Path, github: GitHub, text: str
) -> None:
    (artifact / "report.json").write_text(text)
    (tmp_path / "event.json").write_text(json.dumps(EVENT))
    done = subprocess.run(
        [sys.executable, ROOT / ".github" / "scripts" / "comment.py"],
        env={
            "PYTHONPATH": str(ROOT / "scripts"), "IN": str(artifact), "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_API_URL": github.address, "GITHUB_TOKEN": "canary",
        },
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("::warning title=QF920")
    assert "report.json" in done.stdout
    assert github.requests == []


@pytest.mark.slow
def test_a_run_without_an_artifact_or_without_a_pull_request_changes_nothing(act: Act, github: GitHub) -> None:
    act.environment |= {"FAKE_RUNS": str(act.folder / "runs"), "GITHUB_API_URL": github.address}
    assert run(act).code == 0
    assert run(act, event="push").jobs() == {}
    assert github.requests == []
