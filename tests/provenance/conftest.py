"""Bundles of a release that was never built, by their manifests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qnn.bundle.archive import write_archive
from qnn.bundle.manifest import Manifest, ManifestChip, ManifestSource, to_json
from qnn.provenance.run import Run, run_from_environment
from qnn.provenance.subject import ReleasedBundle, Subject
from tests.bundle.test_manifest import EXAMPLE

WEIGHTS = ManifestSource("weights", "pypi", "toy_models==1.0", "toy models/net.onnx", "ab" * 32, 10)
LICENCE = ManifestSource("licence", "local", "LICENSE", None, "ba" * 32, 11)
CHIPS = {
    "SM8650": ManifestChip("SM8650", 57, "v75", 8, 4, True),
    "SM8550": ManifestChip("SM8550", 43, "v73", 8, 4, True),
}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "acme/forge",
    "GITHUB_WORKFLOW_REF": "acme/forge/.github/workflows/release.yaml@refs/tags/v1.0.0",
    "GITHUB_SHA": COMMIT,
    "GITHUB_RUN_ID": "1234",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_EVENT_NAME": "push",
    "RUNNER_ENVIRONMENT": "github-hosted",
}
RUN: Run = run_from_environment(GITHUB)


def bundle(soc: str, digest: str, *sources: ManifestSource) -> ReleasedBundle:
    """A bundle of the toy model for a chip, whose archive has this sha256."""
    manifest: Manifest = replace(
        EXAMPLE,
        name=f"toy-1.0-s16-w8a16-{soc}-qairt2.51.0",
        chip=CHIPS[soc],
        sources=sources or (WEIGHTS, LICENCE),
        stages={"package": digest, "prepare net": "cd" * 32},
    )
    return ReleasedBundle(Subject(f"{manifest.name}.tar.gz", digest), manifest)


BUNDLES = (bundle("SM8650", "11" * 32), bundle("SM8550", "22" * 32))


def write_dist(folder: Path) -> None:
    """What a build of BUNDLES would leave: archives with a manifest in them and nothing else, and their folders."""
    for one in BUNDLES:
        inside = folder / one.manifest.name
        inside.mkdir(parents=True)
        (inside / "manifest.json").write_text(to_json(one.manifest))
        write_archive(inside, inside.name, folder / one.file.name)
