"""docs/provenance.md: its commands, run as they stand on a release made for the purpose."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from qnn.provenance.checksums import checksums
from qnn.provenance.run import LOCAL_BUILDER
from qnn.provenance.statement import BUILD_TYPE
from qnn.provenance.subject import subject_of
from tests.provenance.conftest import COMMIT
from tests.provenance.fake_sigstore import FakeSigstore, Identity, plain_statement
from tests.provenance.test_attestation import GH

PAGE = Path(__file__).parents[2] / "docs" / "provenance.md"
BY_HAND = PAGE.read_text(encoding="utf-8").split("## Check a bundle by hand")[1].split("\n## ")[0]
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", BY_HAND, re.DOTALL) for line in block.splitlines()]
[NAME] = set(re.findall(r"\S+\.tar\.gz", " ".join(COMMANDS)))


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder as the page asks for: the archive, SHA256SUMS (which lists more) and the attestation."""
    folder = tmp_path / "release"
    folder.mkdir()
    archive, other = folder / NAME, tmp_path / "other.tar.gz"
    archive.write_bytes(b"a bundle")
    other.write_bytes(b"another")
    (folder / "SHA256SUMS").write_text(checksums([subject_of(archive), subject_of(other)]))
    sigstore = FakeSigstore()
    identity = Identity("qnn-forge/qnn-forge", commit=COMMIT)
    (folder / "attestation.sigstore.json").write_text(sigstore.sign(plain_statement([archive, other]), identity))
    (tmp_path / "roots.jsonl").write_text(sigstore.trusted_root())
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of the page. What needs the network gets the roots of trust of the tests instead."""
    if command.startswith("gh attestation trusted-root"):
        command = command.replace("gh attestation trusted-root", "cat ../roots.jsonl")
    elif command.startswith("gh ") and "--custom-trusted-root" not in command:
        command += " --custom-trusted-root ../roots.jsonl"
    environment = {"PATH": f"{GH.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder.parent)}
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_commands_accept_a_good_release_and_say_who_built_it(release: Path) -> None:
    done = [run(command, release) for command in COMMANDS]
    assert [one.returncode for one in done] == [0] * 5, [one.stderr for one in done]
    assert f"{NAME}: OK" in done[0].stdout
    assert done[2].stdout.splitlines() == [
        COMMIT,
        "https://github.com/qnn-forge/qnn-forge/actions/runs/1234/attempts/1",
    ]


def _change_file(folder: Path) -> None:
    (folder / NAME).write_bytes(b"a bundle!")


def _change_attestation(folder: Path) -> None:
    path = folder / "attestation.sigstore.json"
    path.write_text(FakeSigstore().sign(plain_statement([folder / NAME]), Identity("qnn-forge/qnn-forge")))


@pytest.mark.parametrize(("tamper", "refused"), [(_change_file, [0, 1, 2, 4]), (_change_attestation, [1, 2, 4])])
def test_the_commands_refuse_what_was_tampered_with(
    release: Path, tamper: Callable[[Path], None], refused: list[int]
) -> None:
    tamper(release)
    assert [number for number, command in enumerate(COMMANDS) if run(command, release).returncode] == refused


def test_the_addresses_in_statements_lead_to_a_heading_of_the_page() -> None:
    headings = re.findall(r"^#+ (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert {BUILD_TYPE.partition("#")[2], LOCAL_BUILDER.partition("#")[2], "sbom"} <= anchors
