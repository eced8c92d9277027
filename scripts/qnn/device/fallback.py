"""What can be done on a device that no bundle fits: another bundle, or the float model on the CPU. Pure."""

from __future__ import annotations

from qnn.bundle.manifest import Manifest
from qnn.chips.soc import Soc
from qnn.errors.device import BundleForOtherChip
from qnn.index.document import VersionIndex
from qnn.index.entries import fallback_of
from qnn.pull.explain import fallback_lines


def cpu_lines(manifest: Manifest, document: VersionIndex | None) -> tuple[str, ...]:
    """Where the float model for the CPU is: from the bundle's index entry, else from the manifest's sources."""
    if document is None or not document.fallback:
        model = manifest.model
        document = VersionIndex(
            schema=1,
            model=model.name,
            version=model.version,
            summary=model.summary,
            task=model.task,
            licence=model.licence,
            variants=(),
            fallback=fallback_of([manifest]),
        )
    lines = tuple(fallback_lines(document))
    if lines:
        return lines
    sources = sorted(
        f"{one.kind} {one.address}{f', file {one.member}' if one.member else ''}" for one in manifest.sources
    )
    return tuple(f"made from: {line}" for line in sources)


def advice(manifest: Manifest, document: VersionIndex | None, chip: Soc | None) -> tuple[str, ...]:
    """What the index has for the device's chip, and the float model for the CPU."""
    variants = () if document is None else document.variants
    fitting = sorted(
        file.name
        for variant in variants
        for file in variant.files
        if chip is not None and file.soc_id == chip.soc_id and file.yanked is None
    )
    there = (f"in the index for {chip.name}: {name}" for name in fitting) if chip is not None else ()
    return (*there, *cpu_lines(manifest, document))


def require_chip(manifest: Manifest, chip: Soc) -> None:
    """Raise BundleForOtherChip (QF788) unless the bundle was made for this chip."""
    made = manifest.chip
    if made.soc_id != chip.soc_id:
        wish = f"{manifest.model.name}=={manifest.model.version} --soc {chip.name}"
        raise BundleForOtherChip(
            f"{manifest.name} is for {made.name} (soc_id {made.soc_id}, {made.arch}, {made.vtcm_mb} MB VTCM); "
            f"the device has {chip.name} (soc_id {chip.soc_id}, {chip.group})",
            remedy=f"get the bundle for it: qnn-forge pull {wish}",
        )
