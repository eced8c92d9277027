"""A market: bundles that were really built, published to a GitHub and a Hub that are fakes, and an index of them.

All three are served over https, with a certificate of the tests' own in the place of the system's (SSL_CERT_FILE), so
that qnn-forge, `gh`, huggingface_hub, curl and ONNX Runtime run as they would for anybody.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qnn.provenance import checksums
from qnn.provenance.statement import PREDICATE_TYPE, STATEMENT_TYPE
from tests.device.conftest import adb_folder
from tests.e2e.conftest import YAML, Run, conv_net, environment
from tests.provenance.conftest import GITHUB
from tests.provenance.fake_sigstore import attest
from tests.publish import fake_hub_uploads, fake_releases
from tests.publish.conftest import BIN
from tests.publish.fake_hub_uploads import FakeHub
from tests.publish.fake_releases import REPOSITORY, FakeReleases
from tests.sources import fake_server
from tests.sources.fake_server import FakeServer

__all__ = ["REPOSITORY", "adb_folder"]

MODELS = ("toy", "toy-b")
SOCS = ("SM8550", "SM8650", "SM8750")
# What a workflow of the repository says of itself.
WORKFLOW = {
    **GITHUB,
    "GITHUB_REPOSITORY": REPOSITORY,
    "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/release.yaml@refs/heads/main",
}


def bundle_name(model: str, soc: str) -> str:
    return f"{model}-1.0-s16-fp16-{soc}-qairt2.51.0"


@dataclass(frozen=True)
class Market:
    """Folders ``dist`` (the build's), ``index`` and ``public`` below `root`, and who serves what."""

    root: Path
    github: FakeReleases
    hub: FakeHub
    web: FakeServer
    certificate: Path
    settings: Mapping[str, str]
    shops: list[str] = field(default_factory=list)  # paths at which the index is served

    @property
    def dist(self) -> Path:
        return self.root / "dist"

    @property
    def index(self) -> Path:
        return self.root / "index"

    @property
    def trusted_root(self) -> Path:
        return self.root / "provenance" / "trusted_root.jsonl"

    @property
    def attestation(self) -> Path:
        return self.root / "provenance" / "attestation.sigstore.json"

    def environment(self, **more: str) -> dict[str, str]:
        """No proxy, account, index or cache of this machine; `gh` on the path."""
        ours = environment(self.root / "store")
        strange = ("GITHUB_", "GH_", "HF_", "QNN_FORGE_INDEX", "QNN_FORGE_CACHE")
        proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
        bare = {
            name: value for name, value in ours.items() if not name.startswith(strange) and name.upper() not in proxies
        }
        return {
            **bare,
            "HOME": str(self.root / "home"),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "SSL_CERT_FILE": str(self.certificate),
            **self.settings,
            **more,
        }

    def run(self, command: list[str], folder: Path | None = None, **more: str) -> Run:
        done = subprocess.run(
            command,
            cwd=folder or self.root,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def forge(self, *arguments: str, folder: Path | None = None, **more: str) -> Run:
        """Run qnn-forge, in the market's folder unless another is given."""
        return self.run([sys.executable, "-m", "qnn.cli", *arguments], folder, **more)

    def must(self, *arguments: str, **more: str) -> Run:
        """Run qnn-forge, which has to succeed."""
        run = self.forge(*arguments, folder=None, **more)
        assert run.code == 0, run.err
        return run

    def open_shop(self, change: Callable[[str, str], str] = lambda _path, text: text) -> str:
        """Serve the index, each document (path, text) as `change` makes it; returns its address."""
        name = f"/index-{len(self.shops)}"
        self.shops.append(name)
        for path in sorted(self.index.rglob("*.json")):
            there = path.relative_to(self.index).as_posix()
            self.web.routes[f"{name}/{there}"] = fake_server.file(change(there, path.read_text()).encode())
        return self.web.url(name)

    def manifest(self, model: str, soc: str) -> dict[str, Any]:
        """What the build said of a bundle."""
        document: dict[str, Any] = json.loads((self.dist / bundle_name(model, soc) / "manifest.json").read_text())
        return document


def write_models(root: Path) -> None:
    """Two small models with float inputs and outputs. As many samples as travel with a bundle, so that what is
    measured at a build can be measured again.
    """
    random = np.random.default_rng(1)
    for seed, name in enumerate(MODELS):
        model = root / "models" / name
        (model / "samples").mkdir(parents=True)
        conv_net(model / "model.onnx", seed=seed)
        np.savez(model / "samples" / "000.npz", x=random.normal(0, 1, (1, 3, 16, 16)).astype(np.float32))
        text = YAML.format(extra="").replace("name: toy\n", f"name: {name}\n").replace("count: 2", "count: 1")
        (model / "model.yaml").write_text(text)


def signed_statement(folder: Path) -> bytes:
    """What actions/attest signs when it is given the two files of `qnn-forge provenance`."""
    subjects = [
        {"name": subject.name, "digest": {"sha256": subject.sha256}}
        for subject in checksums.read(folder / checksums.FILE_NAME)
    ]
    predicate = json.loads((folder / "predicate.json").read_text())
    statement = {
        "_type": STATEMENT_TYPE, "subject": subjects, "predicateType": PREDICATE_TYPE, "predicate": predicate,
    }  # fmt: skip
    return json.dumps(statement).encode()


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    """Everything built, attested, published to both places and entered into the index, by the command line alone."""
    root = tmp_path_factory.mktemp("market")
    (root / "home").mkdir()
    certificate, key = fake_server.certificate(root)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with ExitStack() as stack:
        github = stack.enter_context(fake_releases.serving(root))
        server = stack.enter_context(fake_releases.downloads(github, tls))
        hub = stack.enter_context(fake_hub_uploads.serving(tls=tls))
        web = stack.enter_context(fake_server.serving(tls))
        for model in MODELS:
            hub.make(f"acme/{model}")
        settings = {
            **fake_releases.environment(root),
            **fake_hub_uploads.environment(hub, str(root / "hub")),
        }
        made = Market(root, github, hub, web, certificate, settings)
        write_models(root)
        made.must("pin")
        made.must("build", "--soc", ",".join(SOCS), "--json")
        made.must("provenance", "dist", "--out", "provenance", **WORKFLOW)
        statement = signed_statement(root / "provenance")
        attest([], REPOSITORY, root / "provenance", statement=statement)
        publish = ("publish", "dist", "--attestation", str(made.attestation), "--index", "index")
        # GITHUB_SERVER_URL is where downloads are; the workflow's own address is in what was attested.
        made.must(*publish, "--to", "github", **{**WORKFLOW, "GITHUB_SERVER_URL": server})
        # Another day, from a laptop: the attestation says whose workflow built them.
        made.must(*publish, "--to", "huggingface", "--repo", "acme/{model}")
        yield made
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An app developer's empty folder."""
    folder = tmp_path / "app"
    folder.mkdir()
    return folder
