"""A small index with real archives, served or in a folder, and pulls from it that need no compiler."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from qnn.bundle.archive import write_archive
from qnn.bundle.manifest import Manifest, ManifestFile, to_json
from qnn.chips.table import load_table
from qnn.index.chips import find_chip
from qnn.index.update import PublishedFile, PublishedRelease, add_release
from qnn.pull.bases import Desk, open_base
from qnn.pull.explain import miss
from qnn.pull.run import Found, Taken, Trust, look_up, take_all
from qnn.pull.wish import Wish
from qnn.sources.protocol import Policy, Silent
from qnn.sources.shelf import Shelf
from tests.index.examples import manifest
from tests.sources import fake_server as fake
from tests.sources.conftest import PLAIN, certificate_and_key, tls_server, trusting
from tests.sources.fake_server import FakeServer, serving

__all__ = ["FILES", "Puller", "Shop", "certificate_and_key", "tls_server", "trusting", "write_bundle"]

FILES = "files"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy, index or cache of the machine that runs the tests."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.delenv("QNN_FORGE_INDEX", raising=False)
    monkeypatch.setenv("QNN_FORGE_CACHE", str(tmp_path / "cache"))


def write_bundle(root: Path, of: Manifest, *, content: bytes) -> Manifest:
    """A bundle's folder below `root`, with `content` as its context binary; returns its manifest."""
    folder = root / of.name
    folder.mkdir(parents=True)
    (folder / "net.bin").write_bytes(content)
    (folder / "net_ctx.onnx").write_bytes(b"wrapper")
    files = tuple(
        ManifestFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)
        for path in sorted(folder.iterdir())
    )
    whole = replace(of, files=files)
    (folder / "manifest.json").write_text(to_json(whole), encoding="utf-8")
    return whole


@dataclass(frozen=True)
class Shop:
    """Where bundles are made and an index is kept."""

    root: Path

    @property
    def index(self) -> Path:
        return self.root / "index"

    def archive(self, of: Manifest, *, size: int = 100_000, seed: int = 0) -> tuple[Manifest, Path]:
        """An archive of about `size` bytes in the index's folder of files, not entered yet."""
        scratch = self.root / f"bundle-{of.name}-{seed}"
        whole = write_bundle(scratch, of, content=random.Random(seed).randbytes(size))
        target = self.index / FILES / f"{of.name}.tar.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_archive(scratch / of.name, of.name, target)
        return whole, target

    def enter(self, of: Manifest, archive: Path, **facts: Any) -> PublishedFile:
        """Enter an archive; `facts` replace what is true of it."""
        data = archive.read_bytes()
        urls = (f"{FILES}/{archive.name}",)
        file = PublishedFile(of, archive.name, len(data), hashlib.sha256(data).hexdigest(), urls, 1, "2026-11-30")
        file = replace(file, **facts)
        add_release(self.index, PublishedRelease((file,)))
        return file

    def publish(self, soc: str = "SM8650", *, size: int = 100_000, seed: int = 0, **facts: Any) -> PublishedFile:
        """Make a bundle of toy for a chip and enter it."""
        whole, archive = self.archive(manifest(soc), size=size, seed=seed)
        return self.enter(whole, archive, **facts)

    def edit(self, old: str, new: str, path: str = "v1/models/toy/1.0.json") -> None:
        """Tamper with a document of the index."""
        document = self.index / path
        text = document.read_text()
        assert old in text
        document.write_text(text.replace(old, new))

    def serve(self, server: FakeServer) -> None:
        """Serve everything as it is now."""
        for path in self.index.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
                server.routes[f"/{path.relative_to(self.index).as_posix()}"] = fake.file(data, tag)


@dataclass(frozen=True)
class Puller:
    """Pulls into a folder, with a cache."""

    out: Path
    cache: Path
    policy: Policy = PLAIN

    @property
    def desk(self) -> Desk:
        return Desk(Shelf(self.cache), self.policy, Silent())

    def find(self, base: str, model: str = "toy", soc: str = "SM8650", **wishes: Any) -> Found:
        wish = replace(Wish(model, find_chip(load_table(), soc)), **wishes)
        return look_up(wish, open_base(base), self.desk)

    def pull(self, base: str, soc: str = "SM8650", trust: Trust | None = None, **wishes: Any) -> Taken:
        found = self.find(base, soc=soc, **wishes)
        missed = miss([found])
        if missed is not None:
            raise missed
        trust = trust or Trust("qnn-forge/qnn-forge")
        (taken,) = take_all([found], self.out, open_base(base), self.desk, trust, 2)
        return taken

    def left(self) -> list[str]:
        """What is in the output folder, hidden things included."""
        return sorted(path.name for path in self.out.iterdir()) if self.out.exists() else []


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


@pytest.fixture
def puller(tmp_path: Path) -> Puller:
    return Puller(tmp_path / "out", tmp_path / "cache")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as made:
        yield made
