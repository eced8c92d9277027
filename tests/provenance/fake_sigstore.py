"""A stand-in for Sigstore: a certificate authority, a certificate transparency log and a transparency log of its own.

What it signs, the real `gh attestation verify --custom-trusted-root` accepts offline under its trusted root and under
no other. It does what Fulcio, the CT log and Rekor do for `actions/attest`, by their formats: RFC 5280 and 6962,
github.com/sigstore/fulcio (docs/oid-info.md), github.com/sigstore/protobuf-specs, DSSE 1.0.

There is no clock: everything is signed at MOMENT, and Sigstore judges certificates at the logged time. What this
makes is as valid in ten years as today.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAYLOAD_TYPE = "application/vnd.in-toto+json"
# `gh` holds certificates of this organisation to the strict rules of the public instance: it wants the certificate in
# a CT log and the signature in a transparency log.
_ORGANISATION = "sigstore.dev"
_FULCIO = "1.3.6.1.4.1.57264.1"
_SCT_LIST = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True)
class Identity:
    """Who asks for a certificate: what GitHub's OpenID Connect token says of a step of a workflow."""

    repository: str
    workflow: str = ".github/workflows/release.yaml"
    ref: str = "refs/tags/v1.0.0"
    commit: str = "c0ffee00" * 5
    run: str = "1234/attempts/1"
    event: str = "push"
    runner: str = "github-hosted"
    issuer: str = "https://token.actions.githubusercontent.com"

    @property
    def url(self) -> str:
        """The repository's address."""
        return f"https://github.com/{self.repository}"

    @property
    def signer(self) -> str:
        """The workflow at the ref it ran from."""
        return f"{self.url}/{self.workflow}@{self.ref}"


class FakeSigstore:
    """One instance with keys of its own."""

    def __init__(self) -> None:
        self._root_key, self._authority_key = _key(), _key()
        self._ct_key, self._log_key = _key(), _key()
        self._root = _authority("root", self._root_key, None, self._root_key)
        self._authority = _authority("intermediate", self._authority_key, self._root, self._root_key)

    def trusted_root(self) -> str:
        """The trusted root as `gh` reads it: one line of JSON."""
        document = {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [_log("https://rekor.example", self._log_key)],
            "ctlogs": [_log("https://ct.example", self._ct_key)],
            "certificateAuthorities": [
                {
                    "subject": {"organization": _ORGANISATION, "commonName": "intermediate"},
                    "uri": "https://fulcio.example",
                    "certChain": {
                        "certificates": [{"rawBytes": _base64(_der(one))} for one in (self._authority, self._root)]
                    },
                    "validFor": {"start": _text(MOMENT - _LIFETIME / 2)},
                }
            ],
        }
        return json.dumps(document) + "\n"

    def sign(self, payload: bytes, identity: Identity) -> str:
        """An attestation of a statement: certificate, signature and log entry in one line of JSON."""
        key = _key()
        certificate = self._certificate(key, identity)
        signature = key.sign(_pre_authentication(payload), ec.ECDSA(hashes.SHA256()))
        document = {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": _base64(_der(certificate))},
                "tlogEntries": [self._entry(payload, signature, certificate)],
                "timestampVerificationData": {"rfc3161Timestamps": []},
            },
            "dsseEnvelope": {
                "payload": _base64(payload),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"sig": _base64(signature)}],
            },
        }
        return json.dumps(document) + "\n"

    def _certificate(self, key: ec.EllipticCurvePrivateKey, identity: Identity) -> x509.Certificate:
        """A leaf certificate, logged: the CT log signs it without the proof of logging, which is then added to it."""
        plain = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self._authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(MOMENT)
            .not_valid_after(MOMENT + timedelta(minutes=10))
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(_key_of(self._authority), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity.signer)]), critical=True
            )
        )
        for number, value in _claims(identity).items():
            plain = plain.add_extension(_extension(f"{_FULCIO}.{number}", _utf8(value)), critical=False)
        unlogged = plain.sign(self._authority_key, hashes.SHA256())
        proof = _octets(self._logged_certificate(unlogged.tbs_certificate_bytes))
        logged = plain.add_extension(_extension(_SCT_LIST.dotted_string, proof), critical=False)
        return logged.sign(self._authority_key, hashes.SHA256())

    def _logged_certificate(self, certificate: bytes) -> bytes:
        """RFC 6962, 3.2 and 3.3: a list of one signed certificate timestamp over an unfinished certificate."""
        moment = struct.pack(">Q", int(MOMENT.timestamp()) * 1000)
        issuer = hashlib.sha256(_public(self._authority_key)).digest()
        signed = b"\0\0" + moment + b"\0\1" + issuer + len(certificate).to_bytes(3, "big") + certificate + b"\0\0"
        signature = self._ct_key.sign(signed, ec.ECDSA(hashes.SHA256()))
        # Version 1, the log, no extensions; then SHA-256 (4) with ECDSA (3).
        timestamp = b"\0" + _log_id(self._ct_key) + moment + b"\0\0" + b"\4\3" + _sized(signature)
        return _sized(_sized(timestamp))

    def _entry(self, payload: bytes, signature: bytes, certificate: x509.Certificate) -> object:
        """What Rekor answers: the entry, its promise to log it, and the proof that it did, as the log's only entry."""
        envelope = {
            "payload": _base64(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": _base64(signature)}],
        }
        body = _canonical(
            {
                "apiVersion": "0.0.1",
                "kind": "dsse",
                "spec": {
                    "envelopeHash": _hash(_canonical(envelope)),
                    "payloadHash": _hash(payload),
                    "signatures": [
                        {
                            "signature": _base64(signature),
                            "verifier": _base64(certificate.public_bytes(serialization.Encoding.PEM)),
                        }
                    ],
                },
            }
        )
        moment = int(MOMENT.timestamp())
        promised = {
            "body": _base64(body),
            "integratedTime": moment,
            "logID": _log_id(self._log_key).hex(),
            "logIndex": 0,
        }
        root = hashlib.sha256(b"\0" + body).digest()
        checkpoint = f"rekor.example - 1\n1\n{_base64(root)}\n"
        signed = _log_id(self._log_key)[:4] + self._log_signature(checkpoint.encode())
        return {
            "logIndex": "0",
            "logId": {"keyId": _base64(_log_id(self._log_key))},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(moment),
            "inclusionPromise": {"signedEntryTimestamp": _base64(self._log_signature(_canonical(promised)))},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": _base64(root),
                "treeSize": "1",
                "hashes": [],
                "checkpoint": {"envelope": f"{checkpoint}\n— rekor.example {_base64(signed)}\n"},
            },
            "canonicalizedBody": _base64(body),
        }

    def _log_signature(self, data: bytes) -> bytes:
        return self._log_key.sign(data, ec.ECDSA(hashes.SHA256()))


def attest(
    files: Iterable[Path], repository: str, folder: Path, *, statement: bytes | None = None
) -> tuple[Path, Path]:
    """Attest files as a workflow of `repository` (owner/name) would; gives the attestation and the trusted root.

    Both are written into `folder`. Without a `statement` the one that is signed names the files and nothing else.
    """
    sigstore = FakeSigstore()
    bundle, root = folder / "attestation.sigstore.json", folder / "trusted_root.jsonl"
    payload = statement if statement is not None else plain_statement(tuple(files))
    bundle.write_text(sigstore.sign(payload, Identity(repository)))
    root.write_text(sigstore.trusted_root())
    return bundle, root


def plain_statement(files: Sequence[Path]) -> bytes:
    """The least that is a provenance statement of files."""
    return json.dumps(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [
                {"name": file.name, "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}
                for file in files
            ],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {"buildType": "https://example.com/build", "externalParameters": {}},
                "runDetails": {"builder": {"id": "https://example.com/builder"}},
            },
        }
    ).encode()


def _claims(identity: Identity) -> dict[int, str]:
    """The extensions Fulcio writes, by the last number of their object identifier."""
    owner = identity.url.rpartition("/")[0]
    return {
        8: identity.issuer,
        9: identity.signer,
        10: identity.commit,
        11: identity.runner,
        12: identity.url,
        13: identity.commit,
        14: identity.ref,
        15: "1001",
        16: owner,
        17: "2002",
        18: identity.signer,
        19: identity.commit,
        20: identity.event,
        21: f"{identity.url}/actions/runs/{identity.run}",
        22: "public",
    }


def _authority(
    name: str, key: ec.EllipticCurvePrivateKey, parent: x509.Certificate | None, parent_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANISATION), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(parent.subject if parent else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(MOMENT - _LIFETIME / 2)
        .not_valid_after(MOMENT + _LIFETIME / 2)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None if parent is None else 0), critical=True)
        .add_extension(_usage(key_cert_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if parent:
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False
        ).add_extension(_key_of(parent), critical=False)
    return builder.sign(parent_key, hashes.SHA256())


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_of(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _extension(identifier: str, value: bytes) -> x509.UnrecognizedExtension:
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(identifier), value)


def _log(url: str, key: ec.EllipticCurvePrivateKey) -> object:
    return {
        "baseUrl": url,
        "hashAlgorithm": "SHA2_256",
        "publicKey": {
            "rawBytes": _base64(_public(key)),
            "keyDetails": "PKIX_ECDSA_P256_SHA_256",
            "validFor": {"start": _text(MOMENT - _LIFETIME / 2)},
        },
        "logId": {"keyId": _base64(_log_id(key))},
    }


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _log_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(_public(key)).digest()


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def _pre_authentication(payload: bytes) -> bytes:
    """What DSSE signs."""
    return b"DSSEv1 %d %b %d %b" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def _canonical(value: object) -> bytes:
    """RFC 8785 for what is canonicalised here: text without controls, and integers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _hash(data: bytes) -> dict[str, str]:
    return {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _sized(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


def _utf8(value: str) -> bytes:
    return _tagged(0x0C, value.encode())


def _octets(value: bytes) -> bytes:
    return _tagged(0x04, value)


def _tagged(tag: int, value: bytes) -> bytes:
    """DER: tag, length, value; lengths below 64 KiB."""
    if len(value) < 0x80:
        return bytes([tag, len(value)]) + value
    if len(value) < 0x100:
        return bytes([tag, 0x81, len(value)]) + value
    return bytes([tag, 0x82]) + struct.pack(">H", len(value)) + value


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
