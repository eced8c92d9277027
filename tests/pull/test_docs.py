"""What docs/pull.md says to type works: the lines for curl, run as they stand against a server."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from qnn.cli import run as qnn_forge
from qnn.index.update import yank
from tests.index.examples import manifest
from tests.pull.conftest import FILES, Shop
from tests.sources import fake_server as fake
from tests.sources.fake_server import FakeServer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pull.md"
BASE = "https://raw.githubusercontent.com/qnn-forge/qnn-forge/index"


@pytest.fixture
def lines(shop: Shop, tls_server: FakeServer) -> str:
    """The block of the page, for the index of a server with a few files of silero-vad."""
    for soc, qairt, digest, revision in (
        ("SM8750", "2.51.0", 1, 1), ("SM8650", "2.48.40", 2, 1), ("SM8650", "2.51.0", 3, 1), ("SM8650", "2.51.0", 4, 2),
    ):  # fmt: skip
        for precision in ("fp16", "w8a16"):
            of = manifest(soc, model="silero-vad", version="6.2.3", precision=precision, qairt=qairt)
            of = replace(of, bucket="default", name=of.name.replace("-s16-", "-default-"))
            whole, archive = shop.archive(of, size=1000, seed=digest)
            kept = archive.rename(archive.with_name(archive.name.replace(".tar", f"-r{revision}.tar")))
            url = tls_server.url(f"/{FILES}/{kept.name}")
            shop.enter(whole, kept, revision=revision, urls=(url,))
    shop.serve(tls_server)
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert BASE in block
    return str(block).replace(BASE, tls_server.url(""))


def test_the_example_says_what_pull_says(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"```\n\$ (.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    command, *printed = block.splitlines()
    real = yaml.safe_load((PAGE.parents[1] / "models" / "silero-vad" / "model.yaml").read_text(encoding="utf-8"))
    of = manifest("SM8650", model="silero-vad", version=real["version"], precision="fp16")
    of = replace(of, bucket="default", name=of.name.replace("-s16-", "-default-"))
    shop.enter(*shop.archive(of))
    monkeypatch.setenv("QNN_FORGE_INDEX", str(shop.index))
    monkeypatch.chdir(tmp_path)
    assert qnn_forge(command.split()[1:]) == 0
    assert capsys.readouterr().out.splitlines() == printed


def run(block: str, folder: Path, certificate: Path) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    return subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", block],
        cwd=folder,
        env=dict(os.environ, CURL_CA_BUNDLE=str(certificate)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_lines_for_curl_get_the_newest_file(
    lines: str, tmp_path: Path, certificate_and_key: tuple[Path, Path]
) -> None:
    done = run(lines, tmp_path / "here", certificate_and_key[0])
    assert done.returncode == 0, done.stderr
    assert "bundle.tar.gz: OK" in done.stdout
    bundle = tmp_path / "here" / "silero-vad-6.2.3-default-fp16-SM8650-qairt2.51.0"
    assert (bundle / "manifest.json").is_file()
    assert (bundle / "net.bin").read_bytes() == random.Random(4).randbytes(1000), "revision 2"


def test_they_stop_at_a_tampered_file_and_pass_over_a_yanked_one(
    lines: str, shop: Shop, tls_server: FakeServer, tmp_path: Path, certificate_and_key: tuple[Path, Path]
) -> None:
    newest = sorted(path for path in tls_server.routes if "fp16-SM8650-qairt2.51.0-r2" in path)[0]
    good = (shop.index / newest.lstrip("/")).read_bytes()
    tls_server.routes[newest] = fake.file(good[:-1] + b"x")
    tampered = run(lines, tmp_path / "tampered", certificate_and_key[0])
    assert tampered.returncode != 0
    assert "bundle.tar.gz: FAILED" in tampered.stdout
    assert sorted(path.name for path in (tmp_path / "tampered").iterdir()) == ["bundle.tar.gz", "index.json"]
    yank(shop.index, "silero-vad", "6.2.3", [hashlib.sha256(good).hexdigest()], "wrong numbers")
    shop.serve(tls_server)
    tls_server.routes[newest] = fake.status(404)
    assert run(lines, tmp_path / "yanked", certificate_and_key[0]).returncode == 0
