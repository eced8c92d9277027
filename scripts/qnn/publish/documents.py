"""The documents of a release: SBOM, provenance statement, attestation, SHA256SUMS and the text that introduces it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.bundle.manifest import Manifest
from qnn.provenance import checksums, sbom, statement
from qnn.provenance.run import Run
from qnn.provenance.subject import ReleasedBundle, Subject
from qnn.publish.bundles import Bundle
from qnn.publish.notes import Story, release_notes
from qnn.publish.plan import PlannedRelease, UnitPlan
from qnn.publish.target import ATTESTATION, NOTES, LocalFile, Release, Target
from qnn.store import file_digest


@dataclass(frozen=True)
class Provenance:
    """Who built (see qnn.provenance.run), the time stamp of the SBOM (seconds, SOURCE_DATE_EPOCH) if there is one, and
    the attestation of the bundles if they were attested.
    """

    run: Run
    epoch: int | None = None
    attestation: Path | None = None


def write_release(
    target: Target,
    plan: UnitPlan,
    planned: PlannedRelease,
    manifests: Mapping[str, Manifest],
    provenance: Provenance,
    folder: Path,
) -> Release:
    """Write the documents of one revision into the empty `folder`; the same bundles give the same bytes.

    `manifests` are by archive name.
    """
    bundles = [
        ReleasedBundle(Subject(file.name, file.sha256), manifests[file.name])
        for file in sorted(planned.bundles, key=lambda file: file.name)
    ]
    ours = [bundle.manifest for bundle in bundles]
    (folder / sbom.FILE_NAME).write_bytes(sbom.sbom(bundles, epoch=provenance.epoch))
    subjects = [bundle.file for bundle in bundles]
    (folder / statement.FILE_NAME).write_bytes(statement.statement(subjects, ours, provenance.run))
    if provenance.attestation is not None:
        shutil.copyfile(provenance.attestation, folder / ATTESTATION)
    story = _story(target, plan, planned, bundles, provenance)
    (folder / NOTES).write_text(release_notes(story), encoding="utf-8")
    files = [*planned.bundles, *_local(folder)]
    listed = checksums.checksums(Subject(file.name, file.sha256) for file in files)
    (folder / checksums.FILE_NAME).write_text(listed, encoding="utf-8")
    files = [*planned.bundles, *_local(folder)]
    ordered = tuple(sorted(files, key=lambda file: file.name))
    return Release(plan.unit, planned.revision, ordered, target.introduction(story))


def _story(
    target: Target,
    plan: UnitPlan,
    planned: PlannedRelease,
    bundles: Sequence[ReleasedBundle],
    provenance: Provenance,
) -> Story:
    return Story(
        unit=plan.unit,
        revision=planned.revision,
        bundles=tuple(bundles),
        address=lambda name: target.address(plan.unit, planned.revision, name),
        attested=None if provenance.attestation is None else _attested_by(provenance.attestation),
        earlier=plan.earlier(planned.revision),
    )


def _attested_by(attestation: Path) -> str | None:
    """The repository (owner/name) of the workflow that signed, as its certificate says; whoever publishes may be
    another, or no workflow at all.
    """
    from qnn.provenance.sigstore import read_claims  # noqa: PLC0415 - only where there is one

    return next((claim.repository for claim in read_claims(attestation) if claim.repository), None)


def _local(folder: Path) -> Sequence[LocalFile]:
    return [
        LocalFile(path.name, path, path.stat().st_size, file_digest(path))
        for path in sorted(folder.iterdir())
        if path.is_file()
    ]


def manifests_of(bundles: Sequence[Bundle]) -> dict[str, Manifest]:
    """Manifests by archive name."""
    return {bundle.file.name: bundle.manifest for bundle in bundles}
