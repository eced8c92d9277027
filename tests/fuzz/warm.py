"""One host that serves every command of a run: starting one for each input would take most of the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from qnn.child import Host


class _Kept(Host):
    """Closed by whoever made it, not by the commands."""

    def close(self) -> None:
        return

    def end(self) -> None:
        super().close()


class _Pool:
    """What commands see of HostPool."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @contextmanager
    def host(self) -> Iterator[Host]:
        yield self._host

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        return


@contextmanager
def warm_host() -> Iterator[Host]:
    """A host which `verify` and `inspect` use too, as long as this is open."""
    kept = _Kept()
    try:
        with (
            patch("qnn.child.HostPool", lambda _size: _Pool(kept)),
            patch("qnn.binary.inspecting.Host", lambda **_: kept),
        ):
            yield kept
    finally:
        kept.end()
