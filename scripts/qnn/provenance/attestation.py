"""Check an attestation with the real `gh attestation verify`: who signed, and that it is this very file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Attested:
    """What the signer's certificate says, which the workflow cannot forge.

    `repository` is owner/name, `signer` the URI of the workflow that signed, `commit` the repository's, `ref` the git
    ref, `run` the URL of the run, `runner` github-hosted or self-hosted; `predicate_type` is the kind of statement.
    """

    repository: str
    signer: str
    commit: str
    ref: str
    run: str
    runner: str
    predicate_type: str


def verify(file: Path, bundle: Path, *, repository: str, trusted_root: Path | None) -> Attested:
    """Check that a workflow of `repository` (owner/name) attested `file` as it is now; returns who did.

    `bundle` is the attestation (a Sigstore bundle in JSON, or several in JSON lines). With `trusted_root` (JSON lines)
    nothing is asked of the network; without one `gh` gets the public roots of trust. Raises CheckerMissing (QF740),
    CheckerTooOld (QF741), UnreadableAttestation (QF742), OfAnotherFile (QF743), AnotherRepository (QF744) and
    AttestationRefused (QF745).
    """
    raise NotImplementedError
