"""Carries a publish out: look, plan, stage, reveal, settle, and the index last."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.errors.base import ForgeError
from qnn.provenance.subject import Subject
from qnn.publish.bundles import Bundle
from qnn.publish.documents import Provenance, manifests_of, write_release
from qnn.publish.entries import enter, require_enterable
from qnn.publish.plan import UnitPlan, plan_unit
from qnn.publish.target import Progress, Target, Unit


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
    the same call goes on from there. Before anything is done, UnreadableAttestation (QF742) and OfAnotherFile (QF743)
    for an attestation that does not name every archive to be sent.
    """
    if provenance.attestation is not None:
        from qnn.provenance.attestation import require_named  # noqa: PLC0415 - only where there is one

        sent = (file for plan in planned.units for release in plan.releases for file in release.bundles)
        require_named(provenance.attestation, (Subject(file.name, file.sha256) for file in sent))
    return tuple(_publish_unit(planned.target, plan, bundles, provenance, index, progress) for plan in planned.units)


def _publish_unit(
    target: Target,
    plan: UnitPlan,
    bundles: Sequence[Bundle],
    provenance: Provenance,
    index: Path | None,
    progress: Progress,
) -> Done:
    if index is not None:
        require_enterable(target, plan, bundles, index)
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
        changed = enter(target, plan, bundles, index)
    return Done(plan, addresses, changed)


def _by_unit(bundles: Iterable[Bundle]) -> dict[Unit, list[Bundle]]:
    found: dict[Unit, list[Bundle]] = {}
    for bundle in sorted(bundles, key=lambda bundle: (bundle.unit, bundle.file.name)):
        found.setdefault(bundle.unit, []).append(bundle)
    return found
