from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qnn.model.spec import Source, SourceKind
from qnn.sources.fetch import fetch
from qnn.sources.protocol import FetchedFile, Policy
from tests.sources.fake_server import FakeServer, certificate, serving

PLAIN = Policy(attempts=3, first_pause=0.01, plain_http_hosts=frozenset({"127.0.0.1"}))
CONTENT = bytes(range(256)) * 40  # 10240 bytes


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def source(
    kind: SourceKind,
    locator: str,
    member: str | None = None,
    content: bytes | None = CONTENT,
) -> Source:
    """A source pinned to `content`, or not pinned."""
    if content is None:
        return Source("det", kind, locator, member, None, None)
    return Source("det", kind, locator, member, digest(content), len(content))


class Bench:
    """Folders for fetches, and a fetch that starts with an empty output folder each time."""

    def __init__(self, root: Path) -> None:
        self.downloads = root / "downloads"
        self.model = root / "model"
        self.model.mkdir()
        self._root = root
        self._count = 0
        self.output = root

    def fetch(self, source: Source, policy: Policy = PLAIN) -> FetchedFile:
        self._count += 1
        self.output = self._root / f"out-{self._count}"
        self.output.mkdir()
        return fetch(source, self.output, self.downloads, model_folder=self.model, policy=policy)

    def left(self) -> list[str]:
        """What the last fetch left in its output folder."""
        return sorted(path.name for path in self.output.rglob("*"))


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, token or Hub setting of the machine that runs the tests."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("GITHUB_TOKEN", "HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as fake:
        yield fake


@pytest.fixture(scope="session")
def certificate_and_key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls_server(certificate_and_key: tuple[Path, Path]) -> Iterator[FakeServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate_and_key)
    with serving(context) as fake:
        yield fake


@pytest.fixture
def trusting(certificate_and_key: tuple[Path, Path]) -> Policy:
    """A policy that trusts the fake server's certificate and allows no plain http."""
    trust = ssl.create_default_context(cafile=str(certificate_and_key[0]))
    return Policy(attempts=3, first_pause=0.01, tls=trust)


@pytest.fixture
def url_source(server: FakeServer) -> Callable[..., Source]:
    """A pinned source of the plain server's path."""

    def make(path: str, member: str | None = None, content: bytes | None = CONTENT) -> Source:
        return source(SourceKind.URL, server.url(path), member, content)

    return make
