from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qnn.libs.fetch import Depot
from qnn.sources.protocol import Policy
from tests.sources.fake_server import FakeServer, serving

PLAIN = Policy(attempts=2, first_pause=0.01, plain_http_hosts=frozenset({"127.0.0.1"}))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no Maven mirror of the machine that runs the tests."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "QNN_FORGE_MAVEN", "QNN_FORGE_STORE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as running:
        yield running


@pytest.fixture
def depot(server: FakeServer, tmp_path: Path) -> Depot:
    """A depot whose Maven repository is the fake server."""
    return Depot(tmp_path / "downloads", server.url("/maven2"), PLAIN)
