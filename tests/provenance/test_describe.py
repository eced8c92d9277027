"""qnn-forge provenance: from archives to what the attest action signs, and what gh then says of them."""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from qnn.cli.provenance import provenance
from qnn.errors.bundles import UnsafeArchive
from qnn.errors.provenance import TooManyFiles
from qnn.errors.publish import NothingToPublish
from qnn.provenance import describe as module
from qnn.provenance.attestation import verify
from qnn.provenance.checksums import check_folder, read
from qnn.provenance.describe import describe
from qnn.provenance.run import LOCAL
from qnn.provenance.statement import PREDICATE_TYPE, STATEMENT_TYPE, check_statement
from qnn.provenance.subject import subject_of
from tests.provenance.conftest import BUNDLES, COMMIT, GITHUB, write_dist
from tests.provenance.fake_sigstore import attest
from tests.provenance.test_attestation import GH


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """The output folder of a build: two archives and their folders."""
    folder = tmp_path / "dist"
    write_dist(folder)
    return folder


def run(*arguments: str, env: dict[str, str] | None = None) -> str:
    """Standard output of qnn-forge provenance."""
    nowhere = dict.fromkeys(GITHUB)  # this test may itself run on GitHub
    done = CliRunner(env={**nowhere, **(env or {})}).invoke(provenance, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_checksums_are_those_of_the_archives(dist: Path, tmp_path: Path) -> None:
    printed = json.loads(run(str(dist), "--out", str(tmp_path / "p"), "--json"))
    assert printed["files"] == [str(tmp_path / "p" / name) for name in ("SHA256SUMS", "predicate.json")]
    assert read(tmp_path / "p" / "SHA256SUMS") == tuple(
        subject_of(dist / bundle.file.name) for bundle in sorted(BUNDLES, key=lambda one: one.file.name)
    )
    (tmp_path / "p" / "SHA256SUMS").rename(dist / "SHA256SUMS")
    check_folder(dist)


def test_on_github_it_names_the_workflow_and_elsewhere_that_it_is_local(dist: Path, tmp_path: Path) -> None:
    run(str(dist), "--out", str(tmp_path / "github"), env=GITHUB)
    run(str(dist), "--out", str(tmp_path / "local"))
    said = {name: json.loads((tmp_path / name / "predicate.json").read_text()) for name in ("github", "local")}
    assert said["github"]["runDetails"]["metadata"]["invocationId"].endswith("acme/forge/actions/runs/1234/attempts/2")
    assert {"gitCommit": COMMIT} in [
        one.get("digest") for one in said["github"]["buildDefinition"]["resolvedDependencies"]
    ]
    assert said["local"]["runDetails"]["builder"]["id"] == LOCAL.builder
    assert "workflow" not in said["local"]["buildDefinition"]["externalParameters"]


def test_what_the_action_signs_with_them_is_a_statement_gh_accepts(
    dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The action puts subjects and predicate into one statement; so does this test."""
    run(str(dist), "--out", str(tmp_path / "p"), env=GITHUB)
    signed = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": one.name, "digest": {"sha256": one.sha256}} for one in read(tmp_path / "p" / "SHA256SUMS")
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": json.loads((tmp_path / "p" / "predicate.json").read_text()),
    }
    raw = json.dumps(signed).encode()
    archive = dist / BUNDLES[0].file.name
    monkeypatch.setenv("PATH", f"{GH.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    bundle, root = attest([], "acme/forge", tmp_path, statement=raw)
    assert verify(archive, bundle, repository="acme/forge", trusted_root=root).repository == "acme/forge"
    # And it is, written our way, the statement that travels with a release.
    ours = (json.dumps(signed, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()
    assert check_statement(ours, archive).commit == COMMIT


def test_more_files_than_an_attestation_names_are_refused_before_any_is_opened(tmp_path: Path) -> None:
    archives = [tmp_path / f"{number}.tar.gz" for number in range(1025)]
    with pytest.raises(TooManyFiles, match="1025 bundles"):
        describe(archives, LOCAL, tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_a_predicate_too_large_to_be_signed_is_refused(tmp_path: Path) -> None:
    large = replace(BUNDLES[0].manifest, stages={f"stage {n}": "ab" * 32 for n in range(200_000)})
    with pytest.raises(TooManyFiles, match="at most 16"):
        module.write([BUNDLES[0].file], [large], LOCAL, tmp_path / "p")


def test_a_folder_without_bundles_and_a_damaged_archive_are_refused(dist: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingToPublish):
        run(str(tmp_path / "empty"))
    with tarfile.open(dist / BUNDLES[0].file.name, "w:gz") as archive:
        archive.add(dist / BUNDLES[0].manifest.name / "manifest.json", "../manifest.json")
    with pytest.raises(UnsafeArchive):
        run(str(dist))
