"""One link changed at a time, each somewhere else between the build and the app: each is refused by its own id."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qnn.errors.base import ForgeError
from qnn.provenance.checksums import check_folder
from qnn.provenance.statement import check_statement
from tests.distribution.conftest import REPOSITORY, Market, bundle_name, signed_statement
from tests.e2e.conftest import Run
from tests.provenance.fake_sigstore import attest

ARCHIVE = f"{bundle_name('toy', 'SM8550')}.tar.gz"
DOCUMENT = "v1/models/toy/1.0.json"
TAG, ATTESTATION = "toy-1.0-r1", "attestation.sigstore.json"


def pull(market: Market, here: Path, base: str, *more: str) -> Run:
    """What somebody sees who wants toy for an SM8550 and insists on proof."""
    root = ("--trusted-root", str(market.trusted_root))
    return market.forge(
        "pull", "toy", "--soc", "SM8550", "--from", base, "--require-attestation", "--attested-by", REPOSITORY,
        *root, *more, folder=here, QNN_FORGE_CACHE=str(here.parent / "cache"),
    )  # fmt: skip


def refused(market: Market, here: Path, base: str, *more: str) -> str:
    """The id and the exit code of the refusal; nothing was left in the folder."""
    run = pull(market, here, base, *more)
    assert run.out == ""
    assert "Traceback" not in run.err
    assert list(here.iterdir()) == []
    (identifier,) = {word for word in run.err.split() if word.startswith("QF") and word[2:].isdigit()}
    return f"{identifier} {run.code}"


def serve_instead(market: Market, patch: pytest.MonkeyPatch, name: str, content: bytes) -> None:
    """Replace a published file of toy at both places, as whoever got hold of both accounts could."""
    (kept,) = (one for one in market.github.releases.values() if one.tag == TAG)
    (asset,) = (one for one in kept.assets.values() if one.name == name)
    patch.setattr(asset, "content", content)
    repository = market.hub.repositories["acme/toy"]
    tree = repository.commits[repository.resolve("1.0-r1") or ""]
    patch.setitem(tree, f"1.0/r1/{name}", replace(tree[f"1.0/r1/{name}"], content=content))


def entry_changed(**facts: object) -> Callable[[str, str], str]:
    """A change of the index: other facts in the entry of the archive, the document otherwise as it was."""

    def change(path: str, text: str) -> str:
        if path != DOCUMENT:
            return text
        document = json.loads(text)
        (entry,) = (file for variant in document["variants"] for file in variant["files"] if file["name"] == ARCHIVE)
        entry.update(facts)
        return json.dumps(document)

    return change


def test_unchanged_it_is_taken(market: Market, here: Path) -> None:
    run = pull(market, here, market.open_shop(entry_changed()))
    assert run.code == 0, run.err
    assert "attested by" in run.out


def test_a_byte_of_the_archive(market: Market, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray((market.dist / ARCHIVE).read_bytes())
    content[len(content) // 2] ^= 1
    serve_instead(market, monkeypatch, ARCHIVE, bytes(content))
    assert refused(market, here, market.open_shop()) == "QF726 9"


def test_the_whole_archive_and_its_sha256_in_the_index(
    market: Market, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another chip's archive, as good as it can be made without the workflow: only the attestation can tell."""
    content = (market.dist / ARCHIVE).read_bytes() + b"\0" * 512
    serve_instead(market, monkeypatch, ARCHIVE, content)
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    assert refused(market, here, market.open_shop(entry_changed(**facts))) == "QF743 9"


def test_the_sha256_in_the_index(market: Market, here: Path) -> None:
    assert refused(market, here, market.open_shop(entry_changed(sha256="ab" * 32))) == "QF726 9"


def test_the_chip_in_the_index(market: Market, here: Path) -> None:
    """An archive for SM8750 passed off as one for SM8550; its attestation is genuine."""
    other = json.loads((market.index / DOCUMENT).read_text())
    name = ARCHIVE.replace("SM8550", "SM8750")
    (entry,) = (file for variant in other["variants"] for file in variant["files"] if file["name"] == name)
    stolen = {key: entry[key] for key in ("name", "urls", "size", "sha256", "attestations", "graphs")}
    assert refused(market, here, market.open_shop(entry_changed(**stolen))) == "QF727 9"


def test_the_numbers_in_the_index(market: Market, here: Path) -> None:
    def change(path: str, text: str) -> str:
        return text.replace('"cosine":0.9', '"cosine":1.9') if path == DOCUMENT else text

    assert refused(market, here, market.open_shop(change)) == "QF727 9"


def test_no_attestation_in_the_index(market: Market, here: Path) -> None:
    assert refused(market, here, market.open_shop(entry_changed(attestations=[]))) == "QF731 9"


def test_the_statement_in_the_attestation(market: Market, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signed statement says another commit: the signature is not of that."""
    document = json.loads(market.attestation.read_text())
    statement = base64.b64decode(document["dsseEnvelope"]["payload"])
    commit = json.loads(statement)["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["gitCommit"]
    forged = statement.replace(commit.encode(), b"f" * 40)
    assert forged != statement
    document["dsseEnvelope"]["payload"] = base64.b64encode(forged).decode()
    serve_instead(market, monkeypatch, ATTESTATION, json.dumps(document).encode())
    assert refused(market, here, market.open_shop()) == "QF745 9"


def test_an_attestation_that_somebody_else_signed(
    market: Market, here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All right in itself, for the same files and the same repository, by another certificate authority."""
    forged, _ = attest([], REPOSITORY, tmp_path, statement=signed_statement(market.root / "provenance"))
    serve_instead(market, monkeypatch, ATTESTATION, forged.read_bytes())
    assert refused(market, here, market.open_shop()) == "QF745 9"


def test_the_attestation_of_another_repository_does_not_count(market: Market, here: Path) -> None:
    assert refused(market, here, market.open_shop(), "--attested-by", "qnn-forge/qnn-forge") == "QF744 9"


def release(market: Market, folder: Path) -> Path:
    """A release as it is downloaded by hand."""
    folder.mkdir()
    for name, content in market.github.published()[TAG].items():
        (folder / name).write_bytes(content)
    return folder


def test_the_published_statement(market: Market, tmp_path: Path) -> None:
    """It is not signed itself; the checksums tell, and it has to be a statement at all."""
    folder = release(market, tmp_path / "release")
    assert len(check_folder(folder)) == len(list(folder.iterdir())) - 1
    path = folder / "provenance.intoto.json"
    facts: Any = check_statement(path.read_bytes(), folder / ARCHIVE)
    path.write_bytes(path.read_bytes().replace(facts.commit.encode(), b"f" * 40))
    with pytest.raises(ForgeError) as caught:
        check_folder(folder)
    assert caught.value.id == "QF749"


def test_an_attestation_that_misses_an_archive_is_not_published(market: Market, tmp_path: Path) -> None:
    archives = [path for path in sorted(market.dist.glob("*.tar.gz")) if path.name != ARCHIVE]
    attestation, _ = attest(archives, REPOSITORY, tmp_path)
    run = market.forge(
        "publish", "dist", "--to", "folder", "--folder", str(tmp_path / "public"), "--attestation", str(attestation)
    )
    assert (run.code, "QF743" in run.err, ARCHIVE in run.err) == (9, True, True)
    assert not (tmp_path / "public").exists()
