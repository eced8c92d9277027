"""Releases to enter into an index, made from the example manifest of tests/bundle."""

from __future__ import annotations

from dataclasses import replace

from qnn.bundle.manifest import Manifest, ManifestChip
from qnn.chips.table import load_table
from qnn.index.update import PublishedFile, PublishedRelease
from tests.bundle.test_manifest import EXAMPLE


def manifest(
    soc: str = "SM8650", *, model: str = "toy", version: str = "1.0", precision: str = "w8a16", qairt: str = "2.51.0"
) -> Manifest:
    """The example manifest for a chip of the table."""
    chip = load_table().lookup(soc)
    return replace(
        EXAMPLE,
        name=f"{model}-{version}-s16-{precision}-{soc}-qairt{qairt}",
        model=replace(EXAMPLE.model, name=model, version=version),
        precision=precision,
        chip=ManifestChip(chip.name, chip.soc_id, chip.arch, chip.vtcm_mb, chip.hvx_threads, chip.fp16),
        toolchain=replace(EXAMPLE.toolchain, qairt=qairt, build_id=f"v{qairt}.1"),
    )


def published(
    of: Manifest, digest: str = "ab", *, revision: int = 1, url: str = "https://files.example"
) -> PublishedFile:
    """The archive of a bundle as it is published; `digest` is two hex digits, repeated."""
    name = f"{of.name}.tar.gz"
    return PublishedFile(of, name, 1234, digest * 32, (f"{url}/{name}",), revision, "2026-11-30")


def release(*files: PublishedFile) -> PublishedRelease:
    return PublishedRelease(files)
