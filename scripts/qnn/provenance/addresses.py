"""Addresses of sources and packages in the forms SBOMs and provenance use: package URLs and plain URLs."""

from __future__ import annotations

import re
from urllib.parse import quote

from qnn.bundle.manifest import ManifestSource


def package_url(name: str, version: str) -> str:
    """The package URL of a package on PyPI. Source: the purl specification, type `pypi` (names lowercase, `-`)."""
    return f"pkg:pypi/{quote(re.sub(r'[-_.]+', '-', name).lower())}@{quote(version, safe='')}"


def source_url(source: ManifestSource) -> str | None:
    """Where a source's file came from: a package URL, or its URL; None for a file of the model's own folder.

    The member of a package or archive is the package URL's subpath, or the URL's fragment.
    """
    member = f"#{quote(source.member)}" if source.member else ""
    owner, _, version = source.address.partition("@")
    match source.kind:
        case "pypi":
            name, _, version = source.address.partition("==")
            return package_url(name, version) + member
        case "huggingface":
            return f"pkg:huggingface/{quote(owner)}@{quote(version, safe='')}{member}"
        case "github":
            # The asset is a file of a release: purl's type `github` names a commit or tag only.
            tag, _, asset = version.partition("/")
            return f"https://github.com/{quote(owner)}/releases/download/{quote(tag)}/{quote(asset)}{member}"
        case "url":
            return source.address + member
    return None
