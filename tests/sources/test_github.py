from __future__ import annotations

import pytest

from qnn.errors.base import ForgeError
from qnn.model.spec import SourceKind
from qnn.sources.protocol import Policy
from tests.sources import fake_server as fake
from tests.sources.conftest import CONTENT, Bench, source
from tests.sources.fake_server import FakeServer

ASSET = source(SourceKind.GITHUB, "k2-fsa/sherpa-onnx@asr/v1.0/m+x.onnx")
PATH = "/k2-fsa/sherpa-onnx/releases/download/asr/v1.0/m%2Bx.onnx"


def test_the_asset_comes_from_github_and_the_token_stays_there(
    bench: Bench, tls_server: FakeServer, trusting: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret")
    tls_server.routes[PATH] = fake.redirect("https://storage.example/signed?sig=1")
    tls_server.routes["/signed"] = fake.file(CONTENT)
    with fake.proxying(tls_server) as (proxy, asked):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        fetched = bench.fetch(ASSET, trusting)
    assert fetched.path.name == "m+x.onnx"
    assert asked == ["github.com:443", "storage.example:443"]
    assert [seen.path for seen in tls_server.seen] == [PATH, "/signed?sig=1"]
    assert [seen.headers.get("authorization") for seen in tls_server.seen] == ["Bearer ghs_secret", None]


@pytest.mark.parametrize("token", ["", "  "])
def test_without_a_token_none_is_sent(
    bench: Bench, tls_server: FakeServer, trusting: Policy, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", token)
    tls_server.routes[PATH] = fake.file(CONTENT)
    with fake.proxying(tls_server) as (proxy, _):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        bench.fetch(ASSET, trusting)
    assert "authorization" not in tls_server.seen[0].headers


def test_a_url_source_never_gets_the_token(
    bench: Bench, tls_server: FakeServer, trusting: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret")
    tls_server.routes["/m"] = fake.file(CONTENT)
    with fake.proxying(tls_server) as (proxy, _):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        bench.fetch(source(SourceKind.URL, "https://github.com/m"), trusting)
    assert "authorization" not in tls_server.seen[0].headers


def test_the_same_asset_by_url_is_not_downloaded_again(
    bench: Bench, tls_server: FakeServer, trusting: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls_server.routes[PATH] = fake.file(CONTENT)
    with fake.proxying(tls_server) as (proxy, _):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        bench.fetch(ASSET, trusting)
        bench.fetch(source(SourceKind.URL, f"https://github.com{PATH}"), trusting)
    assert len(tls_server.seen) == 1


@pytest.mark.parametrize(
    "locator",
    [
        "owner/repo",
        "owner/repo@tag",
        "owner/repo@tag/",
        "owner/repo@/asset",
        "owner/repo@../../other/asset",
        "owner/repo@tag/../asset",
        "owner/..@tag/asset",
        "owner/repo@a//asset",
        "own er/repo@tag/asset",
        "https://github.com/owner/repo",
        "owner/repo@tag@x/asset",
    ],
)
def test_other_addresses_are_refused(bench: Bench, locator: str) -> None:
    with pytest.raises(ForgeError) as caught:
        bench.fetch(source(SourceKind.GITHUB, locator))
    assert caught.value.id == "QF320"
    assert bench.left() == []
