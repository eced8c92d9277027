"""The software bill of materials of a release: CycloneDX 1.6 in JSON.

What went in (weights and other sources, the packages of the toolchain) and what came out (the bundles and the context
binaries in them), each with its digest and licence. Source of the format: cyclonedx.org/docs/1.6/json, ECMA-424.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from qnn.bundle.manifest import Manifest, ManifestModel, ManifestSource, ManifestToolchain
from qnn.provenance.addresses import package_url, source_url
from qnn.provenance.subject import ReleasedBundle

FILE_NAME = "sbom.cdx.json"

# serialNumber is a version 5 UUID of the document's own content in this name space: same release, same number.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://github.com/qnn-forge/qnn-forge/blob/main/docs/provenance.md#sbom")

Json: TypeAlias = "str | int | Sequence[Json] | Mapping[str, Json]"
_Component: TypeAlias = "dict[str, Json]"


def sbom(bundles: Sequence[ReleasedBundle], *, epoch: int | None = None) -> bytes:
    """The SBOM of one release: the bundles of one version of one model.

    `epoch` (seconds, SOURCE_DATE_EPOCH) becomes its timestamp; without it there is none, as there is no clock. Raises
    ValueError for no bundles, or bundles of more than one model and version.
    """
    models = {(bundle.manifest.model.name, bundle.manifest.model.version) for bundle in bundles}
    if len(models) != 1:
        raise ValueError(f"an SBOM is of one version of one model, not of {sorted(models)}")
    bundles = sorted(bundles, key=lambda bundle: bundle.file)
    manifests = [bundle.manifest for bundle in bundles]
    model = manifests[0].model
    # By reference: what several bundles were made from is listed once.
    inputs = {str(component["bom-ref"]): component for manifest in manifests for component in _inputs(manifest)}
    outputs = [_bundle(bundle) for bundle in bundles]
    metadata: dict[str, Json] = {
        "tools": {
            "components": [
                {"type": "application", "name": "qnn-forge", "version": version}
                for version in sorted({manifest.forge for manifest in manifests})
            ]
        },
        "component": {
            "type": "machine-learning-model",
            "bom-ref": _model_ref(model),
            "name": model.name,
            "version": model.version,
            "description": model.summary,
            **({"authors": [{"name": model.attribution}]} if model.attribution else {}),
            "licenses": _licence(model),
        },
    }
    if epoch is not None:
        metadata["timestamp"] = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document: dict[str, Json] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": metadata,
        "components": [*(inputs[ref] for ref in sorted(inputs)), *outputs],
        "dependencies": _dependencies(model, bundles, sorted(inputs)),
    }
    document["serialNumber"] = uuid.uuid5(_NAMESPACE, _text(document)).urn
    return _text(document).encode()


def _text(document: Mapping[str, Json]) -> str:
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _inputs(manifest: Manifest) -> Iterable[_Component]:
    for source in manifest.sources:
        yield _source(manifest.model, source)
    yield _qairt(manifest.toolchain)
    for name, version in manifest.toolchain.packages.items():
        url = package_url(name, version)
        yield {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def _source(model: ManifestModel, source: ManifestSource) -> _Component:
    """A file the model was made from. Its licence is the one the model declares: sources carry none of their own."""
    url = source_url(source)
    component: _Component = {
        "type": "file",
        "bom-ref": _source_ref(source),
        "name": source.name,
        "hashes": [{"alg": "SHA-256", "content": source.sha256}],
        "licenses": _licence(model),
        "properties": _properties(
            {
                "source:kind": source.kind,
                "source:address": source.address,
                **({"source:member": source.member} if source.member else {}),
                "size": str(source.size),
            }
        ),
    }
    if url is not None and url.startswith("pkg:"):
        component["purl"] = url
    elif url is not None:
        component["externalReferences"] = [{"type": "distribution", "url": url}]
    return component


def _qairt(toolchain: ManifestToolchain) -> _Component:
    """Qualcomm's SDK, whose compiler is inside a package of the toolchain."""
    return {
        "type": "framework",
        "bom-ref": _qairt_ref(toolchain),
        "name": "qairt",
        "version": toolchain.qairt,
        "supplier": {"name": "Qualcomm"},
        "properties": _properties({"qairt:build-id": toolchain.build_id, "qairt:installed-by": toolchain.name}),
    }


def _bundle(bundle: ReleasedBundle) -> _Component:
    manifest = bundle.manifest
    digests = {file.path: file.sha256 for file in manifest.files}
    binaries = sorted({graph.binary for graph in manifest.graphs} & digests.keys())
    component: _Component = {
        "type": "file",
        "bom-ref": _bundle_ref(bundle),
        "name": bundle.file.name,
        "version": manifest.model.version,
        "hashes": [{"alg": "SHA-256", "content": bundle.file.sha256}],
        "licenses": _licence(manifest.model),
        "properties": _properties(
            {
                "bundle:bucket": manifest.bucket,
                "bundle:precision": manifest.precision,
                "bundle:soc": manifest.chip.name,
                "bundle:soc-id": str(manifest.chip.soc_id),
                "bundle:arch": manifest.chip.arch,
                "bundle:verified": str(manifest.verified).lower(),
            }
        ),
    }
    if binaries:
        component["components"] = [
            {
                "type": "file",
                "bom-ref": f"{_bundle_ref(bundle)}/{path}",
                "name": path,
                "hashes": [{"alg": "SHA-256", "content": digests[path]}],
            }
            for path in binaries
        ]
    return component


def _dependencies(model: ManifestModel, bundles: Sequence[ReleasedBundle], inputs: Sequence[str]) -> Sequence[Json]:
    """The release is its bundles; a bundle is made from its sources and the packages of its toolchain."""
    made_from = [
        {
            "ref": _bundle_ref(bundle),
            "dependsOn": sorted({str(component["bom-ref"]) for component in _inputs(bundle.manifest)}),
        }
        for bundle in bundles
    ]
    whole: dict[str, Json] = {"ref": _model_ref(model), "dependsOn": sorted(_bundle_ref(bundle) for bundle in bundles)}
    return [whole, *made_from, *({"ref": ref} for ref in inputs)]


def _licence(model: ManifestModel) -> Sequence[Json]:
    """An SPDX expression, or that there is none and why."""
    if model.licence:
        return [{"expression": model.licence, "acknowledgement": "declared"}]
    return [{"license": {"name": f"none stated: {model.licence_reason}", "acknowledgement": "declared"}}]


def _properties(values: Mapping[str, str]) -> Sequence[Json]:
    return [{"name": f"qnn-forge:{name}", "value": value} for name, value in sorted(values.items())]


def _model_ref(model: ManifestModel) -> str:
    return f"model/{model.name}@{model.version}"


def _source_ref(source: ManifestSource) -> str:
    return f"source/{source.name}@sha256:{source.sha256}"


def _qairt_ref(toolchain: ManifestToolchain) -> str:
    return f"qairt/{toolchain.build_id}"


def _bundle_ref(bundle: ReleasedBundle) -> str:
    return f"bundle/{bundle.file.name}"
