"""From models to numbers on a chip: built, attested, published twice, indexed, pulled, checked, run."""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qnn.cli import run as qnn_forge
from tests.device.conftest import Desk
from tests.distribution.conftest import MODELS, REPOSITORY, SOCS, Market, bundle_name
from tests.publish.fake_releases import Trouble


def numbers(document: Any) -> dict[str, tuple[float, float]]:
    """Output → cosine and largest error, of all graphs of a manifest or of a verified bundle."""
    return {
        f"{graph['name']} {output['name']}": (output["cosine"], output["max_abs"])
        for graph in document["graphs"]
        for output in graph["outputs" if "verdict" in document else "numerics"]
    }


def trust(market: Market) -> tuple[str, ...]:
    return (
        "--require-attestation", "--attested-by", REPOSITORY, "--trusted-root", str(market.trusted_root),
    )  # fmt: skip


def test_from_two_models_to_the_numbers_of_a_chip(
    market: Market, here: Path, adb_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = market.open_shop()
    # What is in both places, and nothing that should not be.
    names = {f"{bundle_name(model, soc)}.tar.gz" for model in MODELS for soc in SOCS}
    github = {name for files in market.github.published().values() for name in files if name.endswith(".tar.gz")}
    hub = {path for model in MODELS for path in market.hub.repositories[f"acme/{model}"].main()}
    assert github == names
    assert {path.rpartition("/")[2] for path in hub if path.endswith(".tar.gz")} == names
    assert market.github.wrongs == market.hub.wrongs == []
    checked_by_hand = f"gh attestation verify {bundle_name('toy', SOCS[0])}.tar.gz --bundle attestation.sigstore.json"
    for notes in (market.github.published()["toy-1.0-r1"], market.hub.repositories["acme/toy"].main()):
        assert f"{checked_by_hand} --repo {REPOSITORY}" in notes["README.md"].decode()
    # A phone that calls its chip what Android calls it, asked by the real adb.
    with ExitStack() as stack:
        desk = Desk(here.parent, here, here, stack, capsys, [])
        desk.phone("SM8650", props={"ro.soc.model": "SM8650P"})
        pulled = market.forge(
            "pull", *MODELS, "--device", "--from", base, "--json", *trust(market),
            folder=here, PATH=f"{adb_folder}{os.pathsep}{market.environment()['PATH']}",
        )  # fmt: skip
    assert pulled.code == 0, pulled.err
    taken = pulled.document["pulls"]
    assert [(one["chip"]["name"], one["verdict"], one["attested"]["repository"]) for one in taken] == [
        ("SM8650", "use", REPOSITORY)
    ] * len(MODELS)
    assert [one["folder"] for one in taken] == [bundle_name(model, "SM8650") for model in MODELS]
    assert sorted(path.name for path in here.iterdir()) == sorted(one["folder"] for one in taken)
    # Run on the emulator: the numbers are those of the manifest, to the last digit.
    verified = market.forge("verify", *(one["folder"] for one in taken), "--json", folder=here)
    assert verified.code == 0, verified.err
    for model, bundle in zip(MODELS, verified.document["bundles"], strict=True):
        manifest = json.loads((here / bundle["path"] / "manifest.json").read_text())
        assert manifest == market.manifest(model, "SM8650")
        assert [(graph["source"], graph["reference"]) for graph in manifest["graphs"]] == [("weights", "weights")]
        assert numbers(bundle) == numbers(manifest)
        assert all(0 < largest < 0.01 for _, largest in numbers(manifest).values())


def test_each_place_has_everything_that_the_index_says(market: Market, here: Path) -> None:
    """Every address in the index gives what it should, to curl; and both places give the same."""
    entries = [
        file
        for model in MODELS
        for variant in json.loads((market.index / f"v1/models/{model}/1.0.json").read_text())["variants"]
        for file in variant["files"]
    ]
    assert len(entries) == len(MODELS) * len(SOCS)
    for entry in entries:
        assert len(entry["urls"]) == len(entry["attestations"]) == 2
        for url in entry["urls"]:
            (here / "sums").write_text(f"{entry['sha256']}  {entry['name']}\n")
            got = market.run(["sh", "-ec", f"curl -fsSLo '{entry['name']}' '{url}'; sha256sum -c sums"], here,
                             CURL_CA_BUNDLE=str(market.certificate))  # fmt: skip
            assert got.code == 0, got.err
            assert (here / entry["name"]).stat().st_size == entry["size"]


@pytest.fixture
def impatient(market: Market, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """qnn-forge in this process, for the market, without its pauses between attempts."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("HOME", "PATH", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, market.environment()[name])
    monkeypatch.setenv("QNN_FORGE_CACHE", str(here.parent / "cache"))
    monkeypatch.setattr("qnn.sources.https.time", SimpleNamespace(sleep=lambda _: None, monotonic=time.monotonic))
    monkeypatch.chdir(here)


@pytest.mark.usefixtures("impatient")
def test_the_other_place_serves_when_one_is_down(
    market: Market, here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archive and attestation: both come from the Hub."""
    monkeypatch.setattr(market.github, "troubles", [Trouble("GET", "/releases/download/", 503, times=100)])
    asked = len(market.hub.requests)
    code = qnn_forge(["pull", "toy", "--soc", "SM8750P", "--from", market.open_shop(), "--json", *trust(market)])
    (taken,) = json.loads(capfd.readouterr().out)["pulls"]
    assert (code, taken["attested"]["repository"]) == (0, REPOSITORY)
    name = bundle_name("toy", "SM8750")
    assert [request for request in market.hub.requests[asked:] if request.startswith("GET /acme/toy/resolve")] == [
        f"GET /acme/toy/resolve/1.0-r1/1.0/r1/{name}.tar.gz",
        "GET /acme/toy/resolve/1.0-r1/1.0/r1/attestation.sigstore.json",
    ]
    assert json.loads((here / name / "manifest.json").read_text()) == market.manifest("toy", "SM8750")
