"""What an attestation says of itself. Only `gh` can tell whether it is true: nothing here is a proof.

Source of the format: github.com/sigstore/protobuf-specs (Bundle 0.3), the DSSE envelope and in-toto's Statement v1.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnn.errors.provenance import UnreadableAttestation

# One attestation of 1,024 files is about 2 MB.
_MAX_BYTES = 32 << 20
_REPOSITORY = re.compile(rb"https://github\.com/([A-Za-z0-9-]+/[A-Za-z0-9._-]+)/\.github/workflows/")
_AGAIN = "download the attestation again from the release that the file came from"


@dataclass(frozen=True)
class Claim:
    """One attestation: its JSON on one line, the sha256 of every file it names, and the repository (owner/name) its
    certificate names, if any.
    """

    text: str
    digests: frozenset[str]
    repository: str | None


def read_claims(bundle: Path) -> tuple[Claim, ...]:
    """The claims of an attestation file: JSON, or JSON lines with one each. Raises UnreadableAttestation (QF742)."""
    try:
        with bundle.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise UnreadableAttestation(f"{bundle} is missing", remedy=_AGAIN) from None
    if len(raw) > _MAX_BYTES:
        raise UnreadableAttestation(f"{bundle.name} is larger than {_MAX_BYTES >> 20} MiB", remedy=_AGAIN)
    try:
        claims = tuple(_claim(document) for document in _documents(raw))
    # RecursionError: a file of brackets only.
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise UnreadableAttestation(
            f"{bundle.name} is not an attestation (a Sigstore bundle)", details=(reason[:200],), remedy=_AGAIN
        ) from None
    if not claims:
        raise UnreadableAttestation(f"{bundle.name} is empty", remedy=_AGAIN)
    return claims


def _documents(raw: bytes) -> list[Any]:
    text = raw.decode()
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _claim(document: Any) -> Claim:
    material, envelope = document["verificationMaterial"], document["dsseEnvelope"]
    statement = json.loads(_bytes(envelope["payload"]))
    return Claim(
        json.dumps(document),
        frozenset(subject["digest"]["sha256"] for subject in statement["subject"]),
        _repository(_certificate(material)),
    )


def _certificate(material: Any) -> bytes:
    """Bundle 0.3 has the one certificate, older ones a chain that starts with it."""
    found = material.get("certificate") or material["x509CertificateChain"]["certificates"][0]
    return _bytes(found["rawBytes"])


def _repository(certificate: bytes) -> str | None:
    """By its text, not by its structure: good enough to say in a message who it claims to be of."""
    match = _REPOSITORY.search(certificate)
    return match[1].decode() if match else None


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
