"""Attestations of pulled files, checked by the real gh under a root of trust of the tests' own."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from qnn.errors.base import ForgeError
from qnn.pull.run import Trust
from tests.index.examples import manifest
from tests.provenance.fake_sigstore import attest
from tests.pull.conftest import FILES, Puller, Shop
from tests.sources.fake_server import FakeServer

REPOSITORY = "acme/forge"
ATTESTATION = "attestation.json"


@dataclass(frozen=True)
class Release:
    """A served index whose file is attested, and the root of trust."""

    base: str
    root: Path
    shop: Shop

    def trust(self, *, required: bool = True, repository: str = REPOSITORY) -> Trust:
        return Trust(repository, required, self.root)


@pytest.fixture
def release(shop: Shop, server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in ("GH_TOKEN", "GITHUB_TOKEN", "GH_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    whole, archive = shop.archive(manifest())
    keep = tmp_path / "sigstore"
    keep.mkdir()
    bundle, root = attest([archive], REPOSITORY, keep)
    (shop.index / ATTESTATION).write_bytes(bundle.read_bytes())
    shop.enter(whole, archive, attestation=ATTESTATION)
    shop.serve(server)
    return Release(server.url(""), root, shop)


def refused(puller: Puller, release: Release, trust: Trust) -> ForgeError:
    with pytest.raises(ForgeError) as caught:
        puller.pull(release.base, trust=trust)
    assert puller.left() == []
    return caught.value


def test_the_attestation_is_checked_and_says_who_built(release: Release, puller: Puller) -> None:
    taken = puller.pull(release.base, trust=release.trust())
    assert taken.attested is not None
    assert (taken.attested.repository, taken.note) == (REPOSITORY, None)


def test_somebody_elses_attestation_does_not_count(release: Release, puller: Puller) -> None:
    error = refused(puller, release, release.trust(repository="qnn-forge/qnn-forge", required=False))
    assert error.id == "QF744"
    assert "toy-1.0-s16-w8a16-SM8650-qairt2.51.0.tar.gz was attested by" in error.message


def test_an_attestation_of_another_file_is_refused(release: Release, server: FakeServer, puller: Puller) -> None:
    """Archive, size and sha256 in the index replaced together, as whoever can write the index could do."""
    whole, archive = release.shop.archive(manifest(), seed=7)
    (release.shop.index / "v1" / "models" / "toy" / "1.0.json").unlink()
    release.shop.enter(whole, archive, attestation=ATTESTATION)
    release.shop.serve(server)
    assert refused(puller, release, release.trust(required=False)).id == "QF743"


def test_a_tampered_attestation_is_refused(release: Release, server: FakeServer, puller: Puller) -> None:
    path = release.shop.index / ATTESTATION
    path.write_text(path.read_text().replace('"logIndex": "', '"logIndex": "9'))
    release.shop.serve(server)
    error = refused(puller, release, release.trust(required=False))
    assert error.id in ("QF742", "QF745")
    path.write_text("{}")
    release.shop.serve(server)
    assert refused(puller, release, release.trust(required=False)).id == "QF742"


def test_an_attestation_that_is_named_has_to_be_there(release: Release, server: FakeServer, puller: Puller) -> None:
    del server.routes[f"/{ATTESTATION}"]
    assert refused(puller, release, release.trust(required=False)).id == "QF720"


def test_any_address_of_an_attestation_will_do(release: Release, server: FakeServer, puller: Puller) -> None:
    first, second = '"attestations":["', f'"{ATTESTATION}"]'
    release.shop.edit(f'{first}{ATTESTATION}"]', f'{first}gone.json",{second}')
    release.shop.serve(server)
    taken = puller.pull(release.base, trust=release.trust())
    assert taken.attested is not None
    del server.routes[f"/{ATTESTATION}"]
    with pytest.raises(ForgeError) as caught:
        Puller(puller.out.with_name("other"), puller.cache).pull(release.base, trust=release.trust())
    assert (caught.value.id, len(caught.value.details)) == ("QF720", 1)


def test_without_gh_the_sha256_has_to_do_unless_an_attestation_is_required(
    release: Release, puller: Puller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert refused(puller, release, release.trust()).id == "QF740"
    taken = puller.pull(release.base, trust=release.trust(required=False))
    assert taken.attested is None
    assert taken.note == "the attestation was not checked: the GitHub CLI `gh` was not found; the sha256 was"


def test_a_required_attestation_has_to_be_named(shop: Shop, server: FakeServer, puller: Puller) -> None:
    file = shop.publish("SM8750", seed=3)
    shop.serve(server)
    with pytest.raises(ForgeError) as caught:
        puller.pull(server.url(""), soc="SM8750", trust=Trust(REPOSITORY, required=True))
    assert (caught.value.id, puller.left()) == ("QF731", [])
    assert not [seen for seen in server.seen if seen.path == f"/{FILES}/{file.name}"], "not even downloaded"
