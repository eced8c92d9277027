"""Carries a publish out: look, plan, stage, reveal, settle, and the index last."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from qnn.errors.base import ForgeError
from qnn.errors.publish import PublishedMeanwhile
from qnn.index.update import PublishedFile, PublishedRelease, add_release
from qnn.provenance import sbom, statement
from qnn.publish.bundles import Bundle
from qnn.publish.documents import Provenance, manifests_of, write_release
from qnn.publish.plan import UnitPlan, plan_unit
from qnn.publish.target import ATTESTATION, Progress, Target, Unit


@dataclass(frozen=True)
class Planned:
    """The plan for one target: one a unit, in order, and the archives that are refused with the reason of each."""

    target: Target
    units: tuple[UnitPlan, ...]
    refused: tuple[ForgeError, ...]


@dataclass(frozen=True)
class Done:
    """What became of a unit: where each file is now, and the index documents that changed."""

    plan: UnitPlan
    addresses: Mapping[str, str]
    index: tuple[Path, ...]


def plan_publish(target: Target, bundles: Sequence[Bundle], refused: Sequence[ForgeError]) -> Planned:
    """Look at the target and plan every unit. Changes nothing. A unit the target cannot take is among the refused."""
    plans: list[UnitPlan] = []
    errors = list(refused)
    for unit, files in _by_unit(bundles).items():
        shelf = target.look(unit)
        try:
            plans.append(plan_unit(unit, [bundle.file for bundle in files], shelf, target.limits))
        except ForgeError as error:
            errors.append(error)
    return Planned(target, tuple(plans), tuple(errors))


def publish(
    planned: Planned,
    bundles: Sequence[Bundle],
    provenance: Provenance,
    index: Path | None,
    progress: Progress,
) -> tuple[Done, ...]:
    """Carry out a plan without refusals, unit by unit; each is visible and in the index before the next begins.

    Raises PublishError (QF755 to QF764) and the index's errors (QF710 to QF713); what was done until then stays, and
    the same call goes on from there.
    """
    return tuple(_publish_unit(planned.target, plan, bundles, provenance, index, progress) for plan in planned.units)


def _publish_unit(
    target: Target,
    plan: UnitPlan,
    bundles: Sequence[Bundle],
    provenance: Provenance,
    index: Path | None,
    progress: Progress,
) -> Done:
    for planned in plan.releases:
        with tempfile.TemporaryDirectory(prefix="qnn-forge-publish-") as scratch:
            release = write_release(target, plan, planned, manifests_of(bundles), provenance, Path(scratch))
            target.stage(release, progress)
            target.reveal(release)
    revisions = plan.revisions
    target.settle(plan.unit, sorted(set(revisions.values())))
    addresses = {name: target.address(plan.unit, revision, name) for name, revision in sorted(revisions.items())}
    changed: tuple[Path, ...] = ()
    if index is not None:
        changed = add_release(index, _entry(target, plan, bundles, index))
    return Done(plan, addresses, changed)


def _entry(target: Target, plan: UnitPlan, bundles: Sequence[Bundle], index: Path) -> PublishedRelease:
    """Every bundle of the unit where it is published, with the day and the documents that the target says it has."""
    shelf = {release.revision: release for release in target.look(plan.unit).published}
    missing = sorted(set(plan.revisions.values()) - shelf.keys())
    if missing:
        raise PublishedMeanwhile(
            f"{plan.unit}: revision {missing[0]} is not at {target.place(plan.unit)} any more, or not yet",
            remedy="run the same command again; it enters into the index what is there",
        )

    def address(revision: int, name: str) -> str:
        return _for_index(target.address(plan.unit, revision, name), index)

    def document(revision: int, name: str) -> str | None:
        there = any(file.name == name for file in shelf[revision].files)
        return address(revision, name) if there else None

    return PublishedRelease(
        tuple(
            PublishedFile(
                manifest=bundle.manifest,
                name=bundle.file.name,
                size=bundle.file.size,
                sha256=bundle.file.sha256,
                urls=(address(revision, bundle.file.name),),
                revision=revision,
                published=shelf[revision].date,
                provenance=document(revision, statement.FILE_NAME),
                sbom=document(revision, sbom.FILE_NAME),
                attestation=document(revision, ATTESTATION),
            )
            for bundle in sorted(bundles, key=lambda bundle: bundle.file.name)
            if bundle.unit == plan.unit
            for revision in [plan.revisions[bundle.file.name]]
        )
    )


def _for_index(address: str, index: Path) -> str:
    """A file below the index's folder is named relative to it, so that both can move together."""
    parts = urlsplit(address)
    if parts.scheme != "file":
        return address
    path = Path(url2pathname(parts.path))
    root = index.absolute()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else address


def _by_unit(bundles: Iterable[Bundle]) -> dict[Unit, list[Bundle]]:
    found: dict[Unit, list[Bundle]] = {}
    for bundle in sorted(bundles, key=lambda bundle: (bundle.unit, bundle.file.name)):
        found.setdefault(bundle.unit, []).append(bundle)
    return found
