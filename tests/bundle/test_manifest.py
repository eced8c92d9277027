"""manifest.json: dataclasses, shipped schema and written documents say the same."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from qnn.bundle import manifest as module
from qnn.bundle.manifest import (
    SCHEMA_VERSION,
    Manifest,
    ManifestChain,
    ManifestChainGraph,
    ManifestChip,
    ManifestExport,
    ManifestFile,
    ManifestGraph,
    ManifestMetric,
    ManifestModel,
    ManifestOutput,
    ManifestSource,
    ManifestTensor,
    ManifestToolchain,
    from_json,
    to_json,
)
from qnn.bundle.readme import readme
from qnn.bundle.schema import manifest_schema
from qnn.errors.bundles import InvalidManifest
from qnn.model.spec import Gates
from qnn.tensors import TensorSpec

SHIPPED = Path(module.__file__).with_name("manifest.schema.json")
GOLDEN_README = Path(__file__).with_name("readme.golden.txt")
EXAMPLE = Manifest(
    schema=SCHEMA_VERSION,
    name="toy-1.0-s16-w8a16-SM8650-qairt2.51.0",
    forge="0.1.0",
    model=ManifestModel("toy", "1.0", "A toy.", "test", "MIT", None, "Some authors"),
    bucket="s16",
    dimensions={"size": 16},
    precision="w8a16",
    chip=ManifestChip("SM8650", 57, "v75", 8, 4, True),
    toolchain=ManifestToolchain("pip", "2.51.0", "v2.51.0.1", {"onnxruntime": "1.32.0", "onnxruntime-qnn": "2.7.0"}),
    verified=True,
    samples=2,
    golden=1,
    sources=(ManifestSource("weights", "pypi", "toy==1.0", "toy/model.onnx", "ab" * 32, 10),),
    stages={"package": "cd" * 32},
    graphs=(
        ManifestGraph(
            name="net",
            binary="net.bin",
            wrapper="net_ctx.onnx",
            graph_name="QNN_1",
            inputs=(ManifestTensor("x", "ufixed16", (1, 3), (0.5,), (-10,)),),
            outputs=(ManifestTensor("y", "float32", (1, 2)),),
            interface_inputs=(TensorSpec("x", "float32", (1, 3)),),
            interface_outputs=(TensorSpec("y", "float32", (1, 2)),),
            blob_version="4.0.6",
            vtcm_mb=8,
            hvx_threads=None,
            optimization_level=3,
            spill_fill_bytes=0,
            rewrites=("simplified: onnxsim: 9 nodes became 3",),
            numerics=(ManifestOutput("y", 4, 0.99999, 0.01, 0.001, 1.0, None, Gates(cosine=0.99)),),
            metrics=(ManifestMetric("text", 2, 2, "hello", "hello", "equal"),),
            export=ManifestExport("torch.export", 20, {"torch": "2.13.0"}),
            source="weights",
            reference="weights",
            remarks=("1 tensor leaves fp16's range",),
        ),
    ),
    files=(ManifestFile("net.bin", "ef" * 32, 100),),
)


def test_a_manifest_comes_back_from_its_document() -> None:
    assert from_json(to_json(EXAMPLE), Path("manifest.json")) == EXAMPLE


def test_the_shipped_schema_is_the_dataclasses_and_accepts_what_is_written() -> None:
    assert json.loads(SHIPPED.read_text(encoding="utf-8")) == manifest_schema()
    jsonschema.Draft202012Validator.check_schema(manifest_schema())
    jsonschema.validate(json.loads(to_json(EXAMPLE)), manifest_schema(), jsonschema.Draft202012Validator)


def test_a_manifest_from_before_there_were_remarks_is_read() -> None:
    document = json.loads(to_json(EXAMPLE))
    del document["graphs"][0]["remarks"]
    jsonschema.validate(document, manifest_schema(), jsonschema.Draft202012Validator)
    assert from_json(json.dumps(document), Path("manifest.json")).graphs[0].remarks == ()


def broken(change: str) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(json.loads(to_json(EXAMPLE)))
    if change == "extra":
        document["graphs"][0]["colour"] = "red"
    elif change == "missing":
        del document["chip"]["soc_id"]
    elif change == "type":
        document["chip"]["soc_id"] = "fifty-seven"
    return document


@pytest.mark.parametrize(
    ("change", "place"), [("extra", "graphs[0]"), ("missing", "chip.soc_id"), ("type", "chip.soc_id")]
)
def test_schema_and_reader_refuse_the_same(change: str, place: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken(change), manifest_schema(), jsonschema.Draft202012Validator)
    with pytest.raises(InvalidManifest) as caught:
        from_json(json.dumps(broken(change)), Path("manifest.json"))
    assert any(place in line for line in caught.value.details), caught.value.details


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "schema version None"),
        ('{"schema": 2}', "schema version 2"),
    ],
    ids=["cut", "nested", "list", "newer"],
)
def test_foreign_documents(text: str, says: str) -> None:
    with pytest.raises(InvalidManifest, match=says):
        from_json(text, Path("manifest.json"))


def test_readme_of_a_bundle() -> None:
    assert readme(EXAMPLE) == GOLDEN_README.read_text(encoding="utf-8")


CHAINED = dataclasses.replace(
    EXAMPLE,
    chain=ManifestChain(
        rounds=2,
        graphs=(ManifestChainGraph("find", 1, 1, EXAMPLE.graphs[0].numerics), ManifestChainGraph("read", 3, 4, ())),
        metrics=(ManifestMetric("text", 1, 1, "a b", "a b", "equal"),),
    ),
)


def test_a_chain_stands_in_manifest_schema_and_readme() -> None:
    text = to_json(CHAINED)
    jsonschema.validate(json.loads(text), manifest_schema())
    assert from_json(text, Path("manifest.json")) == CHAINED
    lines = readme(CHAINED).splitlines()
    at = lines.index("all together (find -> read, 2 rounds), each on what the ones before it gave on the HTP emulator")
    assert lines[at + 1] == "  text: float a b, HTP a b (gate: equal)"


def test_a_manifest_from_before_there_were_chains_is_read() -> None:
    document = json.loads(to_json(EXAMPLE))
    assert document.pop("chain") is None
    jsonschema.validate(document, manifest_schema())
    assert from_json(json.dumps(document), Path("manifest.json")) == EXAMPLE
