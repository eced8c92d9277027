"""What the parts of fetching agree on: an order, an artefact, a fetcher; how the network may be used; progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from qnn.model.spec import Source, SourceKind
from qnn.sources.shelf import Shelved, Slot

if TYPE_CHECKING:
    import ssl

GIB = 1 << 30


class Progress(Protocol):
    """Whoever wants to see how far a download is."""

    def advance(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
        """Source `name` has `done_bytes` of `total_bytes` (None while unknown). Called often; may go backwards."""


class Silent:
    """A Progress that shows nothing."""

    def advance(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
        """Show nothing."""


@dataclass(frozen=True)
class Policy:
    """How the network may be used. Made by code only: nothing in a model or in the environment can change it.

    `plain_http_hosts`, `tls` and `hub_endpoint` are seams for tests: hosts that may be spoken to without TLS, the
    TLS trust to use instead of the system's, the Hub to ask instead of huggingface_hub's own setting.
    Times are seconds, sizes bytes.
    """

    unpinned_limit: int = 4 * GIB  # biggest file while its size is not pinned; also added to a member's for its archive
    attempts: int = 5  # requests in all for one download, resumes included
    first_pause: float = 1.0  # doubles with every retry
    longest_pause: float = 60.0  # also the longest Retry-After that is waited for
    connect_timeout: float = 20.0
    read_timeout: float = 60.0
    slowest: int = 256  # bytes per second, averaged over read_timeout; less counts as standing still
    most_redirects: int = 10
    pip_timeout: float = 1800.0
    plain_http_hosts: frozenset[str] = frozenset()
    tls: ssl.SSLContext | None = field(default=None, compare=False)
    hub_endpoint: str | None = None


@dataclass(frozen=True)
class Order:
    """One file to obtain: the source, where it is kept, and under which terms."""

    source: Source
    slot: Slot
    policy: Policy
    progress: Progress

    @property
    def what(self) -> str:
        """The source as messages name it."""
        return describe(self.source)


class Fetcher(Protocol):
    """One way to get a download. Implementations are stateless."""

    def address(self, source: Source) -> str:
        """The one true form of the address: equal for sources that are the same download.

        Raises AddressUnusable (QF320).
        """

    def obtain(self, order: Order) -> Shelved:
        """The download in the order's slot, from the network only where needed.

        The caller has locked the slot, and a complete download that is in it is intact.

        What cannot change at its address (a package version, a commit) is taken from the slot if it is there;
        what can is asked for again, by ETag where possible. Raises a SourceError, or OSError for local faults.
        """


def describe(source: Source) -> str:
    """A source as messages name it: its name, kind and address."""
    return printable(f'source "{source.name}" ({source.kind} {source.locator})')


def printable(text: str) -> str:
    """Text from outside with nothing in it that a terminal would obey."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def archive_member(source: Source) -> str | None:
    """The name to unpack from the download, or None where the download is the file.

    On the Hub `member` is a path in the repository, and what is downloaded is that file.
    """
    return None if source.kind is SourceKind.HUGGINGFACE else source.member


def download_limit(source: Source, policy: Policy) -> int:
    """Most bytes the download itself may have: the pinned size, or a bound where that says nothing about it."""
    if source.size is None:
        return policy.unpinned_limit
    if archive_member(source) is None:
        return source.size
    return source.size + policy.unpinned_limit


@dataclass(frozen=True)
class FetchedFile:
    """A verified file: where it is, its sha256 (64 hex digits) and its size in bytes."""

    path: Path
    sha256: str
    size: int
