"""What the attest action is given: the bundles' checksums, and the predicate it signs with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qnn.bundle.manifest import Manifest
from qnn.bundle.recheck import opened_bundle, read_manifest
from qnn.errors.provenance import TooManyFiles
from qnn.provenance import checksums
from qnn.provenance.run import Run
from qnn.provenance.statement import predicate
from qnn.provenance.subject import Subject, subject_of

PREDICATE = "predicate.json"

# Source: action.yml of actions/attest.
MAX_SUBJECTS = 1024
MAX_PREDICATE = 16 << 20


def describe(archives: Sequence[Path], run: Run, folder: Path) -> tuple[Path, Path]:
    """Write SHA256SUMS and predicate.json of bundle archives into `folder`; returns their paths.

    Raises TooManyFiles (QF747), and what opening a bundle raises: QF701, QF703.
    """
    # Before the archives are opened, which takes minutes.
    if len(archives) > MAX_SUBJECTS:
        raise TooManyFiles(f"{len(archives)} bundles: one attestation names at most {MAX_SUBJECTS}", remedy=_FEWER)
    subjects = [subject_of(path) for path in archives]
    return write(subjects, [_manifest(path) for path in archives], run, folder)


def write(subjects: Sequence[Subject], manifests: Sequence[Manifest], run: Run, folder: Path) -> tuple[Path, Path]:
    """As `describe`, of bundles that were read before."""
    said = predicate(manifests, run)
    if len(said) > MAX_PREDICATE:
        raise TooManyFiles(
            f"the statement of {len(manifests)} bundles has {len(said) >> 20} MiB; at most {MAX_PREDICATE >> 20} are"
            " signed",
            remedy=_FEWER,
        )
    folder.mkdir(parents=True, exist_ok=True)
    sums, written = folder / checksums.FILE_NAME, folder / PREDICATE
    sums.write_text(checksums.checksums(subjects), encoding="utf-8")
    written.write_bytes(said)
    return sums, written


def _manifest(archive: Path) -> Manifest:
    with opened_bundle(archive) as folder:
        return read_manifest(folder)


_FEWER = "release fewer models at a time: run the workflow by hand with `models`"
