"""What a publish would do: from bundles and what is there already to uploads, skips and revisions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qnn.errors.publish import BeyondLimits
from qnn.publish.target import DOCUMENTS, Limits, LocalFile, RemoteFile, Shelf, Unit

# Names that every target keeps as they are; GitHub replaces other characters without a word.
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,199}")


@dataclass(frozen=True)
class Skip:
    """A bundle that is published already, with the same bytes."""

    file: LocalFile
    revision: int


@dataclass(frozen=True)
class PlannedRelease:
    """One revision to publish: its bundles, and which of them wait at the target already."""

    revision: int
    bundles: tuple[LocalFile, ...]
    waiting: frozenset[str]


@dataclass(frozen=True)
class UnitPlan:
    """All that is to be done for one model version at one target; `newest` is what is published of it: bundle name →
    its newest revision.
    """

    unit: Unit
    releases: tuple[PlannedRelease, ...]
    skips: tuple[Skip, ...]
    newest: Mapping[str, int]

    def earlier(self, revision: int) -> tuple[tuple[str, int], ...]:
        """Bundles that are newest in a revision before this one, with that revision."""
        replaced = {file.name for release in self.releases if release.revision <= revision for file in release.bundles}
        planned = {file.name: one.revision for one in self.releases for file in one.bundles if one.revision < revision}
        before = {name: number for name, number in self.newest.items() if name not in replaced} | planned
        return tuple(sorted(before.items()))

    @property
    def revisions(self) -> dict[str, int]:
        """File name → the revision that has it, once the plan is carried out."""
        new = {file.name: release.revision for release in self.releases for file in release.bundles}
        return new | {skip.file.name: skip.revision for skip in self.skips}


@dataclass(frozen=True)
class Reconciled:
    """What brings a hidden place to what is wanted: files that are there, files to send, names to remove first."""

    keep: tuple[LocalFile, ...]
    send: tuple[LocalFile, ...]
    drop: tuple[str, ...]


def plan_unit(unit: Unit, bundles: Sequence[LocalFile], shelf: Shelf, limits: Limits) -> UnitPlan:
    """The plan for a unit's bundles, each of another name.

    A bundle whose name and sha256 are published is skipped; everything else goes into the next revision, or into
    several in name order when one has no room for all. Raises BeyondLimits (QF755) naming every file that the target
    cannot take.
    """
    published = {
        (file.name, file.sha256): release.revision
        for release in sorted(shelf.published, key=lambda release: release.revision, reverse=True)
        for file in release.files
    }
    ordered = sorted(bundles, key=lambda file: file.name)
    skips = tuple(
        Skip(file, published[file.name, file.sha256]) for file in ordered if (file.name, file.sha256) in published
    )
    new = [file for file in ordered if (file.name, file.sha256) not in published]
    _require_room(new, limits)
    first = max((release.revision for release in shelf.published), default=0) + 1
    room = limits.files - len(DOCUMENTS)
    parts = [tuple(new[start : start + room]) for start in range(0, len(new), room)]
    releases = tuple(
        PlannedRelease(revision, part, _waiting(part, shelf.waiting.get(revision, ())))
        for revision, part in enumerate(parts, first)
    )
    newest = {
        file.name: release.revision
        for release in sorted(shelf.published, key=lambda release: release.revision)
        for file in release.files
        if file.name not in DOCUMENTS
    }
    return UnitPlan(unit, releases, skips, newest)


def reconcile(wanted: Iterable[LocalFile], present: Iterable[RemoteFile]) -> Reconciled:
    """Compare what is wanted with what waits: same name, size and sha256 is kept; other content and other names go."""
    there = {file.name: file for file in present}
    ordered = sorted(wanted, key=lambda file: file.name)
    keep = tuple(file for file in ordered if file.name in there and same(file, there[file.name]))
    kept = {file.name for file in keep}
    send = tuple(file for file in ordered if file.name not in kept)
    return Reconciled(keep, send, tuple(sorted(there.keys() - kept)))


def same(file: LocalFile, there: RemoteFile) -> bool:
    """Whether the target has this file, as far as it says."""
    return (file.name, file.size, file.sha256) == (there.name, there.size, there.sha256)


def _waiting(part: Iterable[LocalFile], present: Iterable[RemoteFile]) -> frozenset[str]:
    return frozenset(file.name for file in reconcile(part, present).keep)


def _require_room(files: Sequence[LocalFile], limits: Limits) -> None:
    wrong = [
        f"{file.name}: {file.size:,} bytes, at most {limits.file_bytes:,} are taken"
        for file in files
        if file.size > limits.file_bytes
    ]
    wrong += [
        f"{file.name}: a name of other characters than letters, digits and .+_-"
        for file in files
        if not _NAME.fullmatch(file.name)
    ]
    if wrong:
        raise BeyondLimits(
            f"{len(wrong)} file(s) cannot be taken by the target",
            remedy="publish them to another target (--to huggingface, --to folder), or split the model",
            details=wrong,
        )
