"""Check an attestation with the real `gh attestation verify`: who signed, and that it is this very file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnn.errors.provenance import AnotherRepository, AttestationRefused, OfAnotherFile, UnreadableAttestation
from qnn.provenance.gh import ask
from qnn.provenance.sigstore import read_claims
from qnn.provenance.subject import Subject
from qnn.store.digest import file_digest

# The name an attestation has among the assets of a release.
FILE_NAME = "attestation.sigstore.json"

_DO_NOT_USE = "do not use the file; download file and attestation again, and report it if it stays so"
_NAME = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")


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
    if not _NAME.fullmatch(repository):
        raise AnotherRepository(f"{repository!r} is no repository", remedy="name it as owner/name")
    if trusted_root is not None and not trusted_root.is_file():
        raise UnreadableAttestation(f"the trusted root {trusted_root} is missing", remedy="give the path of one")
    digest = file_digest(file)
    claims = read_claims(bundle)
    if not any(digest in claim.digests for claim in claims):
        raise OfAnotherFile(
            f"{file.name} is not a file that {bundle.name} names",
            details=(f"sha256 of the file {digest}",),
            remedy=_DO_NOT_USE,
        )
    texts = [claim.text for claim in claims]
    answer = ask(file, texts, repository, trusted_root)
    attested = [found for result in answer.results if (found := _attested(result, digest))]
    if attested:
        return attested[0]
    # gh does not say why it refused. An attestation that is a good one of another repository is a fault of its own.
    named = sorted({claim.repository for claim in claims if claim.repository})
    others = [name for name in named if name.lower() != repository.lower()]
    # The attestation is somebody's file: it does not get to start a thousand checks.
    other = next((name for name in others[:3] if ask(file, texts, name, trusted_root).results), None)
    if other is not None:
        raise AnotherRepository(
            f"{file.name} was attested by a workflow of {other}, not of {repository}",
            remedy=f"if you trust {other} say so (--attested-by {other}); else do not use the file",
        )
    raise AttestationRefused(
        f"the attestation of {file.name} was refused: {bundle.name} does not prove that {repository} built it",
        details=answer.complaint or ("gh accepted it and said nothing of this file that can be read",),
        remedy=_DO_NOT_USE,
    )


def require_named(bundle: Path, subjects: Iterable[Subject]) -> None:
    """See that an attestation names every one of these files, before it is published beside them.

    That it is genuine is for `verify` to say. Raises UnreadableAttestation (QF742) and OfAnotherFile (QF743).
    """
    named = frozenset[str]().union(*(claim.digests for claim in read_claims(bundle)))
    missing = sorted(subject.name for subject in subjects if subject.sha256 not in named)
    if missing:
        raise OfAnotherFile(
            f"{bundle.name} does not name {len(missing)} of the files",
            details=missing[:20],
            remedy="attest the files that are published, in the run that built them",
        )


def _attested(result: Any, digest: str) -> Attested | None:
    """One result of gh, if it is about a file of this sha256 and says what gh's results say."""
    try:
        verified = result["verificationResult"]
        statement, certificate = verified["statement"], verified["signature"]["certificate"]
        if digest not in {subject["digest"].get("sha256") for subject in statement["subject"]}:
            return None
        return Attested(
            repository=certificate["sourceRepositoryURI"].removeprefix("https://github.com/"),
            signer=certificate["subjectAlternativeName"],
            commit=certificate["sourceRepositoryDigest"],
            ref=certificate["sourceRepositoryRef"],
            run=certificate["runInvocationURI"],
            runner=certificate["runnerEnvironment"],
            predicate_type=statement["predicateType"],
        )
    except (KeyError, TypeError, AttributeError):
        return None
