"""What a publish enters into the index: every file where the target has it now."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from qnn.errors.publish import PublishedMeanwhile
from qnn.index.document import ROOT, model_path, version_path
from qnn.index.update import PublishedFile, PublishedRelease, add_release
from qnn.provenance import sbom, statement
from qnn.publish.bundles import Bundle
from qnn.publish.plan import UnitPlan
from qnn.publish.target import ATTESTATION, Published, Target


def enter(target: Target, plan: UnitPlan, bundles: Sequence[Bundle], index: Path) -> tuple[Path, ...]:
    """Enter every bundle of a published unit, with the day and the documents that the target says it has.

    Raises PublishedMeanwhile (QF762) and what `add_release` raises.
    """
    shelf = {release.revision: release for release in target.look(plan.unit).published}
    missing = sorted(set(plan.revisions.values()) - shelf.keys())
    if missing:
        raise PublishedMeanwhile(
            f"{plan.unit}: revision {missing[0]} is not at {target.place(plan.unit)} any more, or not yet",
            remedy="run the same command again; it enters into the index what is there",
        )
    return add_release(index, _release(target, plan, bundles, index, shelf))


def require_enterable(target: Target, plan: UnitPlan, bundles: Sequence[Bundle], index: Path) -> None:
    """Raises what `enter` would because of the index (QF710 to QF713), before anything is published."""
    today = datetime.now(UTC).date().isoformat()
    expected = {revision: Published(revision, (), today) for revision in plan.revisions.values()}
    with tempfile.TemporaryDirectory(prefix="qnn-forge-publish-") as scratch:
        copy = Path(scratch)
        for path in (ROOT, model_path(plan.unit.model), version_path(plan.unit.model, plan.unit.version)):
            if (index / path).is_file():
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(index / path, copy / path)
        add_release(copy, _release(target, plan, bundles, index, expected))


def _release(
    target: Target, plan: UnitPlan, bundles: Sequence[Bundle], index: Path, shelf: Mapping[int, Published]
) -> PublishedRelease:
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
