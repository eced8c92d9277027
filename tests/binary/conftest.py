"""A host for the tests that read real binaries: the library runs in its forks, never in the test process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qnn.binary import ContextBinary, inspect_file
from qnn.child import Host

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    running = Host(preload=())
    yield running
    running.close()


@pytest.fixture
def inspected(host: Host, tmp_path: Path) -> Callable[[Path | str], ContextBinary]:
    """Read a file; a bare name means one of tests/binary/data."""

    def read(path: Path | str) -> ContextBinary:
        return inspect_file(DATA / path, host, log=tmp_path / "read.log")

    return read
