"""Whether what the index says of a file is what its manifest says. Pure."""

from __future__ import annotations

import dataclasses

from qnn.bundle.manifest import Manifest
from qnn.index.document import IndexFile, IndexVariant, VersionIndex
from qnn.index.entries import file_of, graphs_of

# What only the publisher knows; everything else follows from the manifest.
_NOT_OF_THE_MANIFEST = frozenset({"urls", "revision", "published", "yanked", "provenance", "sbom", "attestations"})


def differences(document: VersionIndex, variant: IndexVariant, file: IndexFile, manifest: Manifest) -> tuple[str, ...]:
    """Every fact that the entry and the manifest do not agree on, in words."""
    true = file_of(manifest, file.name, file.size, file.sha256)
    pairs: list[tuple[str, object, object]] = [
        ("model", document.model, manifest.model.name),
        ("version", document.version, manifest.model.version),
        ("bucket", variant.bucket, manifest.bucket),
        ("precision", variant.precision, manifest.precision),
        ("dimensions", dict(variant.dimensions), dict(manifest.dimensions)),
        ("inputs and outputs", variant.graphs, graphs_of(manifest)),
    ]
    pairs += [
        (field.name, getattr(file, field.name), getattr(true, field.name))
        for field in dataclasses.fields(IndexFile)
        if field.name not in _NOT_OF_THE_MANIFEST
    ]
    return tuple(f"{name}: the index says {said}, the file {is_}" for name, said, is_ in pairs if said != is_)
