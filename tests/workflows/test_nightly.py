"""nightly.yaml and release.yaml, run; and build-models.yaml called from another repository."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.workflows.conftest import Act, Repository, git, write_toy
from tests.workflows.test_scripts import GH


def add_models(repository: Repository, toy: Path, *names: str) -> None:
    """Models of main: toy, and others like it with other weights."""
    models = repository.folder / "models"
    shutil.rmtree(models)
    shutil.copytree(toy, models / "toy")
    for seed, name in enumerate(names, 1):
        write_toy(models / name, seed=seed)
    repository.commit("models")


@pytest.mark.slow
def test_nightly_builds_all_models_in_shares_and_closes_the_tracking_issue(
    act: Act, repository: Repository, toy: Path, tmp_path: Path
) -> None:
    add_models(repository, toy, "toy-b")
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin" / "gh"
    gh.write_text(GH.format(python=sys.executable, root=str(tmp_path)))
    gh.chmod(0o755)
    (tmp_path / "open.json").write_text('[{"number": 12}]')
    inputs = {"models": "", "socs": "SM8650", "toolchain": "pip", "shard-jobs": "1"}
    options = [part for name, value in inputs.items() for part in ("--input", f"{name}={value}")]
    act.path = str(tmp_path / "bin")
    done = act.run("nightly", "workflow_dispatch", {"inputs": inputs}, *options)
    assert done.code == 0, done.log
    jobs = done.jobs()
    assert jobs["toy · fp16 · SM8650"] == "success"
    assert jobs["toy-b · fp16 · SM8650"] == "success"
    # A variant with one compile job is prepared in it.
    assert not [name for name in done.names() if name.startswith("prepared-")]
    # Each share's report holds its own bundles against its own plan: nothing is missing.
    for shard in ("0", "1"):
        assert "missing" not in done.read(f"report-{shard}", "summary.md").decode()
    assert {"part-0-toy.s16.fp16.sm8650", "part-1-toy-b.s16.fp16.sm8650", "report-0", "report-1"} <= set(done.names())
    asked = [json.loads(line) for line in (tmp_path / "gh.jsonl").read_text().splitlines()]
    # act itself asks gh for a token. (It also stops at a called workflow that fails; what a failure writes is in
    # test_scripts.py.)
    assert [call[:3] for call in asked if call[0] != "auth"][1:] == [["issue", "close", "12"]]
    assert jobs["Tracking issue"] == "success"


@pytest.mark.slow
def test_a_release_is_rehearsed_and_publishing_is_left_to_its_command(
    act: Act, repository: Repository, toy: Path
) -> None:
    add_models(repository, toy)
    inputs = {"models": "toy", "socs": "SM8650", "publish": "false"}
    options = [part for name, value in inputs.items() for part in ("--input", f"{name}={value}")]
    done = act.run("release", "workflow_dispatch", {"inputs": inputs}, *options)
    assert done.code == 0, done.log
    assert "Publish" not in done.jobs()
    assert done.jobs()["toy · fp16 · SM8650"] == "success"
    assert not list((act.folder / "cache").iterdir()), "a release neither reads nor feeds the cache"


CALLER = """\
name: Our models
on: {{push: {{}}}}
permissions: {{}}
jobs:
  build:
    permissions: {{contents: read, packages: read}}
    uses: acme/forge/.github/workflows/build-models.yaml@{commit}
    with: {{models-dir: nets, socs: SM8650}}
"""


@pytest.mark.slow
def test_another_repository_calls_the_workflow_with_models_of_its_own(
    repository: Repository, template: Path, toy: Path, tmp_path: Path
) -> None:
    """The toolkit comes from the workflow's own repository and commit, the models from the caller's."""
    commit = git(repository.folder, "rev-parse", "HEAD")
    theirs = Repository(repository.remotes, "vendor/app")
    shutil.copytree(toy, theirs.folder / "nets" / "toy")
    (theirs.folder / ".github" / "workflows").mkdir(parents=True)
    (theirs.folder / ".github" / "workflows" / "ours.yaml").write_text(CALLER.format(commit=commit))
    git(theirs.folder, "init", "--quiet", "--initial-branch=main")
    git(theirs.folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    theirs.commit("models")
    git(theirs.folder, "remote", "add", "origin", "https://github.com/vendor/app.git")
    act = Act(
        theirs,
        tmp_path / "act",
        ("--local-repository", f"acme/forge@{commit}={repository.folder}"),
        # act does not know job.workflow_repository and job.workflow_sha; the fake checkout answers for GitHub.
        {"FAKE_WORKFLOW_REPOSITORY": "acme/forge", "FAKE_WORKFLOW_SHA": commit},
    )
    done = act.run("ours", "push", {})
    assert done.code == 0, done.log
    assert "part-0-toy.s16.fp16.sm8650" in done.names()
    assert (
        json.loads(done.read("part-0-toy.s16.fp16.sm8650", "results/toy.s16.fp16.sm8650.json"))["targets"][0]["verdict"]
        == "ok"
    )
