"""What a place to publish to must be able to do, and what is said of the files there. Three implementations: GitHub
releases, a Hub repository, a folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from qnn.provenance import checksums, sbom, statement

if TYPE_CHECKING:
    from qnn.publish.notes import Story

ATTESTATION = "attestation.sigstore.json"
NOTES = "README.md"
# Files of a release that are no bundles; the same names in every release of every target.
DOCUMENTS = frozenset({checksums.FILE_NAME, sbom.FILE_NAME, statement.FILE_NAME, ATTESTATION, NOTES})


@dataclass(frozen=True, order=True)
class Unit:
    """What is published together and counts its own revisions: one version of one model."""

    model: str
    version: str

    def __str__(self) -> str:
        return f"{self.model} {self.version}"


@dataclass(frozen=True)
class LocalFile:
    """A file to send: its plain name there, where it is here, sha256 (64 hex digits) and size (bytes)."""

    name: str
    path: Path
    size: int
    sha256: str


@dataclass(frozen=True)
class RemoteFile:
    """A file as the target has it; `sha256` is None where the target does not say (a transfer that broke off)."""

    name: str
    size: int
    sha256: str | None


@dataclass(frozen=True)
class Published:
    """A revision that everybody can see; `date` is the day it was published, YYYY-MM-DD, in UTC."""

    revision: int
    files: tuple[RemoteFile, ...]
    date: str


@dataclass(frozen=True)
class Shelf:
    """Everything a target has of a unit: what is published, and what waits unseen under a revision's number."""

    published: tuple[Published, ...] = ()
    waiting: Mapping[int, tuple[RemoteFile, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """What a target takes: files in one release (its documents included) and bytes in one file."""

    files: int
    file_bytes: int


@dataclass(frozen=True)
class Release:
    """One release, ready to be sent: bundles and documents, and the Markdown text that introduces it."""

    unit: Unit
    revision: int
    files: tuple[LocalFile, ...]
    notes: str


class Progress(Protocol):
    """Told what happens, for whoever shows it."""

    def sent(self, file: LocalFile) -> None:
        """A file arrived."""

    def kept(self, file: LocalFile) -> None:
        """A file was there already, sent by an earlier try."""


class Target(Protocol):
    """A place to publish to. All methods raise PublishError (QF755 to QF764); OSError goes through."""

    @property
    def name(self) -> str:
        """github, huggingface or folder."""

    @property
    def limits(self) -> Limits:
        """What it takes."""

    def place(self, unit: Unit) -> str:
        """Where a unit goes, for people: the repository, the folder."""

    def look(self, unit: Unit) -> Shelf:
        """What is there of a unit. Changes nothing."""

    def introduction(self, story: Story) -> str:
        """The text that people see first, in Markdown."""

    def stage(self, release: Release, progress: Progress) -> None:
        """Send every file of the release that does not wait there already, where nobody sees them, and read back size
        and sha256 of all. Raises ReadBackDiffers (QF760).
        """

    def reveal(self, release: Release) -> None:
        """The one write that makes a staged release visible, whole. Raises PublishedMeanwhile (QF762)."""

    def settle(self, unit: Unit, revisions: Sequence[int]) -> None:
        """Whatever a published revision should have beside its files (a tag); does nothing when it is there."""

    def address(self, unit: Unit, revision: int, name: str) -> str:
        """The address of a published file, the same for ever."""
