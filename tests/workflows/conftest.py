"""Running the workflows for real: act in host mode on a repository made of this working tree.

GitHub's own actions are replaced by those in fake_actions; artifacts go through act's artifact server. Steps, scripts,
the command line, the compiler and the emulator are the real ones.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.e2e.conftest import YAML, conv_net

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BIN = Path(sys.executable).parent
WORKFLOWS = ROOT / ".github" / "workflows"
FAKES = {
    "actions/attest": "attest",
    "actions/checkout": "checkout",
    "actions/setup-python": "setup-python",
    "actions/upload-artifact": "upload-artifact",
    "actions/download-artifact": "download-artifact",
    "actions/cache": "cache",
}
GIT = {
    "GIT_AUTHOR_NAME": "tests", "GIT_AUTHOR_EMAIL": "tests@localhost",
    "GIT_COMMITTER_NAME": "tests", "GIT_COMMITTER_EMAIL": "tests@localhost",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip


def git(folder: Path, *command: str) -> str:
    """Run git, with nobody's configuration."""
    done = subprocess.run(
        ["git", *command], cwd=folder, env={**os.environ, **GIT}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def write_toy(folder: Path, *, seed: int = 0) -> None:
    """A small model that builds, with its sources pinned."""
    (folder / "samples").mkdir(parents=True)
    conv_net(folder / "model.onnx", seed=seed)
    random = np.random.default_rng(1)
    for number in range(2):
        np.savez(folder / "samples" / f"{number:03d}.npz", x=random.normal(0, 1, (1, 3, 16, 16)).astype(np.float32))
    (folder / "model.yaml").write_text(YAML.format(extra="").replace("name: toy\n", f"name: {folder.name}\n"))
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "scripts"), QNN_FORGE_STORE=str(folder.parents[1] / "store"))
    command = [sys.executable, "-m", "qnn.cli", "pin", str(folder)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    shutil.rmtree(folder.parents[1] / "store", ignore_errors=True)


@dataclass(frozen=True)
class Repository:
    """A repository on a fake GitHub: the folder `remotes` holds OWNER/NAME."""

    remotes: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.remotes / self.name

    def commit(self, message: str) -> None:
        """Everything in the work tree."""
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--message", message)

    def pull_request(self, change: Callable[[Path], object], *, branch: str = "change") -> None:
        """Leave HEAD at what GitHub checks out for a pull request: a merge of the branch into main."""
        git(self.folder, "checkout", "--quiet", "-b", branch)
        change(self.folder)
        self.commit("change")
        git(self.folder, "checkout", "--quiet", "--detach", "main")
        git(self.folder, "merge", "--quiet", "--no-ff", "--no-edit", branch)


@dataclass(frozen=True)
class Done:
    """A finished run: exit code, log records, and what it left behind."""

    code: int
    records: tuple[dict[str, Any], ...]
    artifacts: Path

    @property
    def log(self) -> str:
        return "\n".join(str(record.get("msg", "")).rstrip("\n") for record in self.records)

    def jobs(self) -> dict[str, str]:
        """Job name → result."""
        return {
            record["job"].rsplit("/", 1)[-1].strip(): record["jobResult"]
            for record in self.records
            if "jobResult" in record
        }

    def names(self) -> list[str]:
        """Names of the artifacts."""
        return sorted(path.stem for path in self.artifacts.rglob("*.zip"))

    def read(self, artifact: str, member: str) -> bytes:
        """One file of an artifact."""
        [path] = self.artifacts.rglob(f"{artifact}.zip")
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)

    def members(self, artifact: str) -> list[str]:
        """Files of an artifact."""
        [path] = self.artifacts.rglob(f"{artifact}.zip")
        with zipfile.ZipFile(path) as archive:
            return sorted(archive.namelist())

    def report(self) -> Any:
        """The report the run hands over."""
        return json.loads(self.read("report-0", "report.json"))

    def summary(self) -> str:
        """What the run's page shows."""
        return self.read("report-0", "summary.md").decode()


@dataclass
class Act:
    """act in host mode. State (caches, artifacts) lies below `folder` and outlives a run, as it does on GitHub."""

    repository: Repository
    folder: Path
    more: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    path: str = ""  # searched before the machine's own programs

    def start(self, workflow: str, event: str, payload: dict[str, Any], *options: str) -> subprocess.Popen[str]:
        """Start a run; its log is one JSON record a line."""
        artifacts = self.folder / "artifacts"
        shutil.rmtree(artifacts, ignore_errors=True)  # act numbers every run 1
        for name in ("artifacts", "cache", "home", "act"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "event.json").write_text(json.dumps(payload))
        command = [
            str(BIN / "act"), event, "--json", "--rm", "--pull=false", "--no-cache-server", "--no-skip-checkout",
            "--workflows", f".github/workflows/{workflow}.yaml", "--eventpath", str(self.folder / "event.json"),
            "--platform", "ubuntu-24.04=-self-hosted", "--concurrent-jobs", "2",
            "--action-cache-path", str(self.folder / "act"), "--artifact-server-path", str(artifacts),
            "--artifact-server-addr", "127.0.0.1", "--artifact-server-port", str(free_port()),
            *local_actions(), *self._own_workflows(), *self.more, *options,
        ]  # fmt: skip
        variables = {
            "FAKE_REMOTES": str(self.repository.remotes),
            "FAKE_ACTIONS": str(HERE / "fake_actions"),
            "FAKE_CACHE": str(self.folder / "cache"),
            "FAKE_ATTESTATIONS": str(self.folder / "attestations"),
            # What GitHub sets and act does not.
            "GITHUB_WORKFLOW_REF": f"{self.repository.name}/.github/workflows/{workflow}.yaml@refs/heads/main",
            "RUNNER_ENVIRONMENT": "github-hosted",
            "QNN_FORGE_PYTHON": sys.executable,
            **self.environment,
        }
        command += [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
        return subprocess.Popen(
            command,
            cwd=self.repository.folder,
            env={
                "PATH": f"{self.path}:{BIN}:{os.environ['PATH']}".lstrip(":"),
                "HOME": str(self.folder / "home"),
                **GIT,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def run(self, workflow: str, event: str, payload: dict[str, Any], *options: str) -> Done:
        """Run a workflow to its end."""
        return self.finish(self.start(workflow, event, payload, *options))

    def finish(self, process: subprocess.Popen[str]) -> Done:
        """Wait for a run."""
        out, _ = process.communicate(timeout=300)
        records = tuple(json.loads(line) for line in out.splitlines() if line.startswith("{"))
        return Done(process.returncode, records, self.folder / "artifacts")

    def _own_workflows(self) -> list[str]:
        """`uses: ./.github/workflows/…` means the commit at hand; act would fetch it from GitHub."""
        commit = git(self.repository.folder, "rev-parse", "HEAD")
        return ["--local-repository", f"{self.repository.name}@{commit}={self.repository.folder}"]


def local_actions() -> list[str]:
    """Stand-ins for the actions the workflows name, at the commits they name."""
    found = set()
    for path in [*WORKFLOWS.glob("*.yaml"), *ROOT.glob(".github/actions/*/action.yml")]:
        found |= set(re.findall(r"uses: ([\w-]+/[\w-]+)(?:/[\w/-]+)?@([0-9a-f]{40})", path.read_text()))
    return [
        part
        for action, commit in sorted(found)
        if action in FAKES
        for part in ("--local-repository", f"{action}@{commit}={HERE / 'fake_actions' / FAKES[action]}")
    ]


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def pull_request_event(**fields: Any) -> dict[str, Any]:
    """The event of an opened pull request of a branch of the same repository."""
    request = {
        "number": 7,
        "title": "Add a model",
        "labels": [],
        "head": {"ref": "change", "repo": {"full_name": "acme/forge", "fork": False}},
        "base": {"ref": "main", "repo": {"full_name": "acme/forge"}},
    }
    return {"action": "opened", "number": 7, "pull_request": {**request, **fields}}


def document(name: str) -> Any:
    """A workflow as YAML says it is (its `on` key is read as true)."""
    return yaml.safe_load((WORKFLOWS / f"{name}.yaml").read_text())


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit: this working tree."""
    folder = tmp_path_factory.mktemp("template")
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "main")
    git(folder, "remote", "add", "origin", "https://github.com/acme/forge.git")
    return folder


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Repository:
    """acme/forge on a fake GitHub."""
    shutil.copytree(template, tmp_path / "remotes" / "acme" / "forge", symlinks=True)
    return Repository(tmp_path / "remotes", "acme/forge")


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model named toy."""
    folder = tmp_path_factory.mktemp("models") / "models" / "toy"
    write_toy(folder)
    return folder


@pytest.fixture
def act(repository: Repository, tmp_path: Path) -> Act:
    """act on acme/forge."""
    return Act(repository, tmp_path / "act")
