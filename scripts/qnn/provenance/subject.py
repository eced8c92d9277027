"""What provenance is about: files of a release, by name and digest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qnn.bundle.manifest import Manifest
from qnn.store.digest import file_digest


@dataclass(frozen=True, order=True)
class Subject:
    """One file: its plain name (no folders) and its sha256 in 64 hex digits."""

    name: str
    sha256: str


@dataclass(frozen=True)
class ReleasedBundle:
    """One bundle archive of a release and the manifest inside it."""

    file: Subject
    manifest: Manifest


def subject_of(path: Path) -> Subject:
    """The subject of a file, read now."""
    return Subject(path.name, file_digest(path))
