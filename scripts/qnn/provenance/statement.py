"""The provenance statement of a release: an in-toto Statement v1 with an SLSA provenance v1 predicate.

Source of the formats: github.com/in-toto/attestation (spec/v1/statement.md), slsa.dev/spec/v1.1/provenance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from qnn.bundle.manifest import Manifest, ManifestSource, ManifestToolchain
from qnn.errors.provenance import OfAnotherFile, UnreadableStatement
from qnn.provenance.addresses import package_url, source_url
from qnn.provenance.run import Run
from qnn.provenance.subject import Subject, subject_of

FILE_NAME = "provenance.intoto.json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://github.com/qnn-forge/qnn-forge/blob/main/docs/provenance.md#build-type-1"

Json: TypeAlias = "str | int | Sequence[Json] | Mapping[str, Json] | None"


def statement(subjects: Sequence[Subject], manifests: Sequence[Manifest], run: Run) -> bytes:
    """The statement: these files were made by this run from what the manifests name. Same arguments, same bytes."""
    return _encode(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": one.name, "digest": {"sha256": one.sha256}} for one in sorted(subjects)],
            "predicateType": PREDICATE_TYPE,
            "predicate": _predicate(manifests, run),
        }
    )


def predicate(manifests: Sequence[Manifest], run: Run) -> bytes:
    """The statement's predicate alone: what the attest action signs together with the subjects it is given."""
    return _encode(_predicate(manifests, run))


def _encode(document: Mapping[str, Json]) -> bytes:
    return (json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _predicate(manifests: Sequence[Manifest], run: Run) -> Mapping[str, Json]:
    """Keys as SLSA has them; what is inside externalParameters and internalParameters is our build type's."""
    manifests = sorted(manifests, key=lambda manifest: manifest.name)
    workflow = run.workflow
    external: dict[str, Json] = {
        "bundles": [
            {
                "name": manifest.name,
                "model": manifest.model.name,
                "version": manifest.model.version,
                "bucket": manifest.bucket,
                "precision": manifest.precision,
                "soc": manifest.chip.name,
            }
            for manifest in manifests
        ]
    }
    internal: dict[str, Json] = {
        "toolchains": _distinct([_toolchain(manifest.toolchain) for manifest in manifests]),
        "stages": {manifest.name: dict(manifest.stages) for manifest in manifests},
    }
    dependencies = [
        *(_source(source) for manifest in manifests for source in manifest.sources),
        *(_package(*package) for manifest in manifests for package in manifest.toolchain.packages.items()),
    ]
    details: dict[str, Json] = {
        "builder": {
            "id": run.builder,
            "version": {"qnn-forge": ", ".join(sorted({manifest.forge for manifest in manifests}))},
        }
    }
    if workflow is not None:
        external["workflow"] = {"repository": workflow.repository, "path": workflow.path, "ref": workflow.ref}
        internal["github"] = {"event": workflow.event, "runner": workflow.runner}
        dependencies.append(
            {"uri": f"git+{workflow.repository}@{workflow.ref}", "digest": {"gitCommit": workflow.commit}}
        )
        details["metadata"] = {"invocationId": workflow.invocation}
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": external,
            "internalParameters": internal,
            "resolvedDependencies": _distinct(dependencies),
        },
        "runDetails": details,
    }


def _toolchain(toolchain: ManifestToolchain) -> Mapping[str, Json]:
    return {
        "name": toolchain.name,
        "qairt": toolchain.qairt,
        "buildId": toolchain.build_id,
        "packages": dict(toolchain.packages),
    }


def _source(source: ManifestSource) -> Mapping[str, Json]:
    url = source_url(source)
    return {
        "name": source.name,
        "digest": {"sha256": source.sha256},
        # A file of the model's own folder has no address but the commit's.
        **({"uri": url} if url else {}),
    }


def _package(name: str, version: str) -> Mapping[str, Json]:
    return {"name": name, "uri": package_url(name, version)}


def _distinct(values: Sequence[Mapping[str, Json]]) -> Sequence[Json]:
    """Each value once, in the order of their JSON."""
    texts = {json.dumps(value, sort_keys=True): value for value in values}
    return [texts[text] for text in sorted(texts)]


@dataclass(frozen=True)
class Statement:
    """What a statement says: its subjects, who built, and the bundles' names with their stages' digests.

    `commit` and `invocation` (an URL) are None for a local build.
    """

    subjects: tuple[Subject, ...]
    builder: str
    commit: str | None
    invocation: str | None
    stages: Mapping[str, Mapping[str, str]]


def read_statement(raw: bytes) -> Statement:
    """Read a statement that `statement` wrote, strictly. Raises UnreadableStatement (QF746)."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - only reading needs it
    from jsonschema.exceptions import best_match  # noqa: PLC0415

    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnreadableStatement(f"the statement is not JSON: {error}", remedy=_AGAIN) from None
    fault = best_match(Draft202012Validator(json.loads(_SCHEMA.read_bytes())).iter_errors(document))
    if fault is not None:
        raise UnreadableStatement(
            f"the statement is not valid at {fault.json_path}: {fault.message[:200]}", remedy=_AGAIN
        )
    try:
        same = _encode(document) == raw
    except UnicodeEncodeError:  # half of a surrogate pair
        same = False
    if not same:
        # A key twice, other white space: JSON readers differ in what they make of such a file.
        raise UnreadableStatement("the statement is not written the way qnn-forge writes it", remedy=_AGAIN)
    return _read(document)


def check_statement(raw: bytes, file: Path) -> Statement:
    """Read a statement and see that it is about `file` as it is now; returns what it says.

    This is no proof of who wrote the statement: that is the attestation's part. Raises UnreadableStatement (QF746) and
    OfAnotherFile (QF743).
    """
    found = read_statement(raw)
    actual = subject_of(file)
    listed = next((one for one in found.subjects if one.name == actual.name), None)
    if listed is None:
        raise OfAnotherFile(
            f"the statement does not name {actual.name}", remedy="take file and statement from the same release"
        )
    if listed != actual:
        raise OfAnotherFile(
            f"{actual.name} is not the file that the statement names",
            details=(f"stated sha256 {listed.sha256}", f"actual sha256 {actual.sha256}"),
            remedy="do not use the file; download it again, and report it if it still differs",
        )
    return found


def _read(document: Any) -> Statement:
    definition, details = document["predicate"]["buildDefinition"], document["predicate"]["runDetails"]
    commits = [
        one["digest"]["gitCommit"] for one in definition["resolvedDependencies"] if "gitCommit" in one.get("digest", {})
    ]
    return Statement(
        subjects=tuple(Subject(one["name"], one["digest"]["sha256"]) for one in document["subject"]),
        builder=details["builder"]["id"],
        commit=commits[0] if commits else None,
        invocation=details.get("metadata", {}).get("invocationId"),
        stages=definition["internalParameters"]["stages"],
    )


_SCHEMA = Path(__file__).with_name("statement.schema.json")
_AGAIN = "download the statement again from the release that the file came from"
