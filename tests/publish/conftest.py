"""Made-up releases for the targets, and real bundles of two models for two chips."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import constants

from qnn.bundle.archive import write_archive
from qnn.publish.gh import Gh
from qnn.publish.github import GithubTarget
from qnn.publish.hub import HubTarget
from qnn.publish.hub_client import HubClient
from qnn.publish.patience import Patience
from qnn.publish.target import LocalFile, Release, Unit
from tests.e2e.conftest import YAML, Run, conv_net, environment
from tests.publish import fake_hub_uploads, fake_releases
from tests.publish.fake_hub_uploads import FakeHub
from tests.publish.fake_releases import REPOSITORY, FakeReleases

UNIT = Unit("toy", "1.0")
TOY = "toy-1.0-s16-fp16-{}-qairt2.51.0"
CARD = "---\nlicense: mit\n---\n# toy\n"
BIN = Path(sys.executable).parent


@dataclass
class Recorder:
    """Progress that remembers."""

    sent_names: list[str] = field(default_factory=list)
    kept_names: list[str] = field(default_factory=list)

    def sent(self, file: LocalFile) -> None:
        self.sent_names.append(file.name)

    def kept(self, file: LocalFile) -> None:
        self.kept_names.append(file.name)


@dataclass
class Sleeps:
    """A clock that remembers how long it was asked to sleep."""

    naps: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.naps.append(seconds)


def content_of(name: str, seed: str = "") -> bytes:
    """Some bytes, the same for the same name and seed."""
    return f"{name} {seed} ".encode() * 50


@pytest.fixture
def release(tmp_path: Path) -> Callable[..., Release]:
    """Makes a release of files with made-up content."""

    def make(*names: str, revision: int = 1, seed: str = "") -> Release:
        folder = tmp_path / f"files-{revision}-{seed}"
        folder.mkdir(exist_ok=True)
        files = []
        for name in (*names, "SHA256SUMS"):
            path = folder / name
            path.write_bytes(content_of(name, seed))
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            files.append(LocalFile(name, path, path.stat().st_size, sha256))
        return Release(UNIT, revision, tuple(files), CARD)

    return make


@pytest.fixture
def sleeps() -> Sleeps:
    return Sleeps()


@pytest.fixture
def patience(sleeps: Sleeps) -> Patience:
    return Patience(attempts=3, first_pause=0.5, longest_pause=60.0, sleep=sleeps)


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeReleases]:
    """A GitHub that `gh` in this process's environment speaks to."""
    with fake_releases.serving(tmp_path) as github:
        for name in ("GITHUB_TOKEN", "GH_HOST", "GH_ENTERPRISE_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        for name, value in fake_releases.environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        yield github


@pytest.fixture
def github(releases: FakeReleases, patience: Patience) -> GithubTarget:
    return GithubTarget(REPOSITORY, gh=Gh(str(BIN / "gh"), patience))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A Hub with the repository acme/toy."""
    with fake_hub_uploads.serving() as fake:
        fake.make("acme/toy")
        monkeypatch.setenv("HF_TOKEN", fake_hub_uploads.TOKEN)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield fake


@pytest.fixture
def hub_target(hub: FakeHub, patience: Patience) -> HubTarget:
    return HubTarget({"toy": "acme/toy"}, HubClient(patience, hub.address))


@dataclass(frozen=True)
class Shop:
    """Real bundles of two models for two chips in `dist`, and a command line whose servers are fakes."""

    root: Path

    @property
    def dist(self) -> Path:
        return self.root / "dist"

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """`gh` on the path, and no GitHub or Hub of this machine."""
        ours = environment(self.root / "store")
        bare = {name: value for name, value in ours.items() if not name.startswith(("GITHUB_", "GH_", "HF_"))}
        return {**bare, "PATH": f"{BIN}:{os.environ['PATH']}", **more}

    def forge(self, *arguments: str, env: Mapping[str, str] | None = None) -> Run:
        """Run qnn-forge in the shop."""
        done = subprocess.run(
            [sys.executable, "-m", "qnn.cli", *arguments],
            cwd=self.root,
            env=self.environment(env or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Run(done.returncode, done.stdout, done.stderr)


def edit(shop: Shop, change: Callable[[dict[str, Any]], object], soc: str = "SM8650") -> Path:
    """Change a bundle's manifest and pack it anew, as somebody would who wants to get around a check."""
    folder = shop.dist / TOY.format(soc)
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    shutil.rmtree(shop.dist / "results", ignore_errors=True)
    archive = shop.dist / f"{folder.name}.tar.gz"
    write_archive(folder, folder.name, archive)
    return archive


def build_shop(root: Path) -> Shop:
    """Build toy and toy-b for SM8550 and SM8650; the results are in ``dist/results``."""
    shop = Shop(root)
    random = np.random.default_rng(1)
    for seed, name in enumerate(("toy", "toy-b")):
        model = root / "models" / name
        (model / "samples").mkdir(parents=True)
        conv_net(model / "model.onnx", seed=seed)
        for number in range(2):
            sample = random.normal(0, 1, (1, 3, 16, 16)).astype(np.float32)
            np.savez(model / "samples" / f"{number:03d}.npz", x=sample)
        wish = f"publish: {{github: {str(seed == 0).lower()}, huggingface: acme/{name}}}\n"
        (model / "model.yaml").write_text(YAML.format(extra=wish).replace("name: toy\n", f"name: {name}\n"))
    pinned = shop.forge("pin")
    assert pinned.code == 0, pinned.err
    built = shop.forge("build", "--soc", "SM8550,SM8650", "--json")
    assert built.code == 0, built.err
    (shop.dist / "results").mkdir()
    (shop.dist / "results" / "build.json").write_text(built.out)
    return shop


@pytest.fixture(scope="session")
def built_shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Built once; nobody writes to it."""
    return build_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def shop(built_shop: Shop, tmp_path: Path) -> Shop:
    """A copy to change."""
    root = tmp_path / "shop"
    shutil.copytree(built_shop.dist, root / "dist")
    shutil.copytree(built_shop.root / "models", root / "models")
    return Shop(root)
