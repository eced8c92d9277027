"""The publishing steps of release.yaml, run: real `gh` and huggingface_hub, fakes of the two servers, a real push."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.publish import fake_hub_uploads, fake_releases
from tests.publish.fake_releases import Trouble
from tests.workflows.conftest import GIT, ROOT, Act, Repository, document, git

SCRIPT = ROOT / ".github" / "scripts" / "index.sh"


def workflow(dist: Path) -> str:
    """A workflow of the job's own steps: the checkout, then everything after the bundles were brought."""
    steps = document("release")["jobs"]["publish"]["steps"]
    first = next(number for number, step in enumerate(steps) if step.get("id") == "index")
    give = {"run": f"mkdir -p qnn-forge-work/parts && cp -r '{dist}' qnn-forge-work/parts/dist"}
    job = {"runs-on": "ubuntu-24.04", "steps": [steps[0], give, *steps[first:]]}
    return yaml.safe_dump({"on": {"push": {}}, "jobs": {"publish": job}})


def as_github(remotes: Path) -> dict[str, str]:
    """git takes repositories of this folder for those on GitHub."""
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{remotes}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }


@pytest.fixture
def dist(toy: Path, tmp_path: Path) -> Path:
    """A build of toy for one chip."""
    out = tmp_path / "dist"
    command = [sys.executable, "-m", "qnn.cli", "build", str(toy), "--soc", "SM8650", "--out", str(out)]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "scripts"), QNN_FORGE_STORE=str(tmp_path / "store"))
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_a_release_is_published_to_both_and_the_index_is_pushed_even_if_the_second_fails_at_first(
    act: Act, repository: Repository, toy: Path, dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_releases, "REPOSITORY", "acme/forge")
    shutil.rmtree(repository.folder / "models")
    shutil.copytree(toy, repository.folder / "models" / "toy")
    with (repository.folder / "models" / "toy" / "model.yaml").open("a") as text:
        text.write("publish: {github: true, huggingface: acme/toy}\n")
    (repository.folder / ".github" / "workflows" / "publish.yaml").write_text(workflow(dist))
    repository.commit("publish")
    with fake_releases.serving(tmp_path) as github, fake_hub_uploads.serving() as hub:
        hub.make("acme/toy")
        act.environment |= as_github(repository.remotes) | fake_releases.environment(tmp_path)
        act.environment |= fake_hub_uploads.environment(hub, str(tmp_path / "hf"))
        for name in ("GH_TOKEN", "HF_TOKEN"):  # the steps give them, from the secrets
            del act.environment[name]
        secrets = ("-s", f"GITHUB_TOKEN={fake_releases.TOKEN}", "-s", f"HF_TOKEN={fake_hub_uploads.TOKEN}")
        hub.troubles = [Trouble("POST", "/commit/", 403)]

        failed = act.run("publish", "push", {"ref": "refs/heads/main"}, *secrets)
        assert failed.code != 0
        assert "QF756" in failed.log
        assert set(github.published()) == {"toy-1.0-r1"}
        files = github.published()["toy-1.0-r1"]
        assert "attestation.sigstore.json" in files
        [name] = [name for name in files if name.endswith(".tar.gz")]
        assert files[name] == (dist / name).read_bytes()
        entered = json.loads(git(repository.folder, "show", "index:v1/models/toy/1.0.json"))
        assert len(entered["variants"][0]["files"][0]["urls"]) == 1

        done = act.run("publish", "push", {"ref": "refs/heads/main"}, *secrets)
        assert done.code == 0, done.log
        assert len(github.published()) == 1
        assert set(github.sent.values()) == {1}
        assert f"1.0/r1/{name}" in hub.repositories["acme/toy"].main()
        [entry] = json.loads(git(repository.folder, "show", "index:v1/models/toy/1.0.json"))["variants"][0]["files"]
        assert [url.partition("://")[2].partition("/")[0] for url in entry["urls"]] == [
            "github.com", hub.address.partition("://")[2],
        ]  # fmt: skip
        assert git(repository.folder, "rev-list", "--count", "index") == "2"
        tokens = (fake_releases.TOKEN, fake_hub_uploads.TOKEN)
        assert not [token for token in tokens if token in failed.log + done.log]


def run_index(folder: Path, verb: str, remotes: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ, **GIT, **as_github(remotes), "GITHUB_REPOSITORY": "acme/forge", "GITHUB_RUN_ID": "7",
    }  # fmt: skip
    return subprocess.run(
        [SCRIPT, verb, "index"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_index_branch_begins_grows_and_is_left_alone_when_nothing_changed(tmp_path: Path) -> None:
    remotes = tmp_path / "remotes"
    remote = remotes / "acme" / "forge"
    remote.mkdir(parents=True)
    git(remote, "init", "--quiet", "--bare", ".")
    for number, text in enumerate(["one", "one", "two"]):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        assert run_index(folder, "get", remotes).returncode == 0
        (folder / "index" / "v1").mkdir(exist_ok=True)
        (folder / "index" / "v1" / "index.json").write_text(text)
        (folder / "index" / ".lock").write_text("")
        put = run_index(folder, "put", remotes)
        assert put.returncode == 0, put.stderr
    assert git(remote, "rev-list", "--count", "index") == "2"
    assert git(remote, "show", "index:v1/index.json") == "two"
    assert git(remote, "ls-tree", "-r", "--name-only", "index") == "v1/index.json"


def test_an_index_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    got = run_index(tmp_path, "get", tmp_path / "nowhere")
    assert got.returncode == 1
    assert "cannot be read" in got.stdout
