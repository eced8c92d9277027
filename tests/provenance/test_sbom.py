"""The SBOM: valid CycloneDX 1.6, complete, and the same for the same release."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from hypothesis import given
from hypothesis import strategies as st
from packageurl import PackageURL

from qnn.bundle.manifest import ManifestSource
from qnn.provenance.sbom import sbom
from qnn.provenance.subject import ReleasedBundle
from tests.provenance.conftest import BUNDLES, bundle

VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)


def document(*bundles: ReleasedBundle, epoch: int | None = None) -> Any:
    """The SBOM of bundles as JSON, seen to be valid."""
    raw = sbom(bundles or BUNDLES, epoch=epoch)
    assert VALIDATOR.validate_str(raw.decode()) is None
    found = json.loads(raw)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    return found


def components(found: Any) -> dict[str, Any]:
    """By reference; a reference twice would hide one."""
    refs = [one["bom-ref"] for one in found["components"]]
    assert len(refs) == len(set(refs))
    return {one["bom-ref"]: one for one in found["components"]}


def properties(component: Any) -> dict[str, str]:
    return {one["name"]: one["value"] for one in component["properties"]}


def test_the_validator_finds_faults() -> None:
    broken = document()
    broken["components"][0]["type"] = "weights"
    assert VALIDATOR.validate_str(json.dumps(broken)) is not None


def test_everything_that_went_in_and_came_out_is_there() -> None:
    found = document()
    assert found["metadata"]["component"]["name"] == "toy"
    assert found["metadata"]["component"]["version"] == "1.0"
    assert found["metadata"]["component"]["authors"] == [{"name": "Some authors"}]
    assert found["metadata"]["component"]["licenses"] == [{"expression": "MIT", "acknowledgement": "declared"}]
    assert set(components(found)) == {
        f"source/weights@sha256:{'ab' * 32}",
        f"source/licence@sha256:{'ba' * 32}",
        "pkg:pypi/onnxruntime@1.32.0",
        "pkg:pypi/onnxruntime-qnn@2.7.0",
        "qairt/v2.51.0.1",
        "bundle/toy-1.0-s16-w8a16-SM8650-qairt2.51.0.tar.gz",
        "bundle/toy-1.0-s16-w8a16-SM8550-qairt2.51.0.tar.gz",
    }


def test_weights_have_digest_licence_and_where_they_came_from() -> None:
    weights = components(document())[f"source/weights@sha256:{'ab' * 32}"]
    assert weights["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert weights["licenses"] == [{"expression": "MIT", "acknowledgement": "declared"}]
    url = PackageURL.from_string(weights["purl"])
    assert (url.type, url.name, url.version, url.subpath) == ("pypi", "toy-models", "1.0", "toy models/net.onnx")
    assert properties(weights)["qnn-forge:source:member"] == "toy models/net.onnx"
    assert properties(weights)["qnn-forge:size"] == "10"


@pytest.mark.parametrize(
    ("source", "key", "value"),
    [
        (
            ManifestSource("w", "huggingface", f"acme/Toy@{'a1' * 20}", "onnx/net.onnx", "ab" * 32, 1),
            "purl",
            f"pkg:huggingface/acme/Toy@{'a1' * 20}#onnx/net.onnx",
        ),
        (
            ManifestSource("w", "github", "acme/toy@v1.0/net+x.zip", "net.onnx", "ab" * 32, 1),
            "externalReferences",
            [
                {
                    "type": "distribution",
                    "url": "https://github.com/acme/toy/releases/download/v1.0/net%2Bx.zip#net.onnx",
                }
            ],
        ),
        (
            ManifestSource("w", "url", "https://example.com/net.onnx", None, "ab" * 32, 1),
            "externalReferences",
            [{"type": "distribution", "url": "https://example.com/net.onnx"}],
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, ManifestSource) else "",
)
def test_addresses_of_each_kind(source: ManifestSource, key: str, value: object) -> None:
    found = components(document(bundle("SM8650", "11" * 32, source)))[f"source/w@sha256:{'ab' * 32}"]
    assert found[key] == value
    if key == "purl":
        assert PackageURL.from_string(found["purl"]).to_string() == found["purl"]


def test_a_bundle_is_made_from_its_own_sources() -> None:
    other = ManifestSource("weights", "local", "other.onnx", None, "fe" * 32, 1)
    found = document(BUNDLES[0], bundle("SM8550", "22" * 32, other))
    made_from = {one["ref"]: one.get("dependsOn", []) for one in found["dependencies"]}
    assert f"source/weights@sha256:{'ab' * 32}" in made_from[f"bundle/{BUNDLES[0].file.name}"]
    assert f"source/weights@sha256:{'fe' * 32}" not in made_from[f"bundle/{BUNDLES[0].file.name}"]
    assert f"source/weights@sha256:{'fe' * 32}" in made_from[f"bundle/{BUNDLES[1].file.name}"]
    assert made_from["model/toy@1.0"] == sorted(f"bundle/{one.file.name}" for one in BUNDLES)
    # Every reference leads somewhere, and everything is in the graph.
    known = {*components(found), "model/toy@1.0"}
    assert known == set(made_from)
    assert {ref for refs in made_from.values() for ref in refs} <= known


def test_a_bundle_names_chip_and_context_binaries() -> None:
    found = components(document())[f"bundle/{BUNDLES[0].file.name}"]
    assert found["hashes"] == [{"alg": "SHA-256", "content": "11" * 32}]
    assert properties(found) == {
        "qnn-forge:bundle:arch": "v75",
        "qnn-forge:bundle:bucket": "s16",
        "qnn-forge:bundle:precision": "w8a16",
        "qnn-forge:bundle:soc": "SM8650",
        "qnn-forge:bundle:soc-id": "57",
        "qnn-forge:bundle:verified": "true",
    }
    assert [(one["name"], one["hashes"][0]["content"]) for one in found["components"]] == [("net.bin", "ef" * 32)]


def test_a_model_without_a_licence_says_why() -> None:
    one = BUNDLES[0]
    model = replace(one.manifest.model, licence=None, licence_reason="asked, no answer", attribution=None)
    found = document(replace(one, manifest=replace(one.manifest, model=model)))
    licence = {"license": {"name": "none stated: asked, no answer", "acknowledgement": "declared"}}
    assert found["metadata"]["component"]["licenses"] == [licence]
    assert "authors" not in found["metadata"]["component"]


@given(st.permutations(BUNDLES))
def test_the_order_of_bundles_does_not_matter(order: list[ReleasedBundle]) -> None:
    assert sbom(order) == sbom(BUNDLES)


def test_the_serial_number_is_of_the_content() -> None:
    assert sbom(BUNDLES) == sbom(BUNDLES)
    assert document()["serialNumber"] != document(BUNDLES[0])["serialNumber"]


def test_there_is_a_time_only_when_one_is_given() -> None:
    assert "timestamp" not in document()["metadata"]
    assert document(epoch=1_767_268_800)["metadata"]["timestamp"] == "2026-01-01T12:00:00Z"


def test_an_sbom_is_of_one_version_of_one_model() -> None:
    other = replace(BUNDLES[1].manifest, model=replace(BUNDLES[1].manifest.model, version="2.0"))
    with pytest.raises(ValueError, match="one version of one model"):
        sbom([BUNDLES[0], replace(BUNDLES[1], manifest=other)])
    with pytest.raises(ValueError, match="one version of one model"):
        sbom([])
