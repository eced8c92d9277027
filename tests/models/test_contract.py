"""What holds for every model: it lints. For those of FETCHED, whose files are small, also what takes their files: true
pins, licence text, inputs as in the ONNX file, code that keeps its contract. The others are held to it by `make zoo`.
"""

import hashlib
import re
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from tests.models.bench import MODELS, Bench, Case, document, shapes

from qnn.model.load import lint_model

NAMES = sorted(folder.name for folder in MODELS.iterdir() if (folder / "model.yaml").exists())
FETCHED = ["dtln", "ppocr-v4", "silero-vad", "speech-embedding"]
GRAPHS = [(model, graph) for model in FETCHED for graph in document(model)["graphs"]]
LICENCES = {"MIT": "Permission is hereby granted, free of charge", "Apache-2.0": "Apache License\n"}

every_model = pytest.mark.parametrize("model", NAMES)
every_fetched_model = pytest.mark.parametrize("model", FETCHED)
every_graph = pytest.mark.parametrize(("model", "graph"), GRAPHS)


def test_the_models_of_the_demo_are_here() -> None:
    assert set(FETCHED) <= set(NAMES)


@every_model
def test_editors_find_the_schema_and_the_name_is_the_folder(model: str) -> None:
    first = (MODELS / model / "model.yaml").read_text(encoding="utf-8").splitlines()[0]
    schema = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert schema is not None
    assert (MODELS / model / schema[1]).resolve() == MODELS.parent / "scripts/qnn/model/model.schema.json"
    assert document(model)["name"] == model


@every_model
def test_lint_has_nothing_to_say(model: str) -> None:
    assert lint_model(MODELS / model) == ()


@every_fetched_model
def test_sources_are_what_the_pins_say(bench: Bench, model: str) -> None:
    for name, file in bench.sources(model).items():
        source, content = document(model)["sources"][name], file.read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (source["sha256"], source["size"]), name


@every_fetched_model
def test_the_licence_text_is_the_licence_that_is_named(bench: Bench, model: str) -> None:
    licence = document(model)["licence"]
    text = bench.sources(model)[licence["text"]].read_text(encoding="utf-8")
    assert LICENCES[licence["spdx"]] in text
    assert "Copyright" in text


@every_graph
def test_inputs_and_gated_outputs_are_those_of_the_onnx_file(bench: Bench, model: str, graph: str) -> None:
    session = ort.InferenceSession(bench.sources(model)[document(model)["graphs"][graph]["source"]])
    declared = {tensor.name: tensor.shape for tensor in session.get_inputs()}
    assert set(declared) == set(shapes(model, graph))
    for name, shape in shapes(model, graph).items():
        assert len(shape) == len(declared[name])
        assert all(own == size for own, size in zip(declared[name], shape, strict=True) if isinstance(own, int))
    assert {tensor.name for tensor in session.get_outputs()} == set(document(model)["checks"]["outputs"][graph])


@every_graph
def test_data_yields_what_the_graph_takes_and_the_same_bytes_each_time(bench: Bench, model: str, graph: str) -> None:
    count = document(model)["checks"]["count"]
    first, second = (bench.samples(model, graph, count) for _ in range(2))
    assert len(first) == count
    for sample in first:
        assert {name: array.shape for name, array in sample.items()} == shapes(model, graph)
        assert {array.dtype for array in sample.values()} == {np.dtype(np.float32)}
        assert all(np.isfinite(array).all() for array in sample.values())
    assert [_bytes(sample) for sample in first] == [_bytes(sample) for sample in second]
    assert len({tuple(_bytes(sample).values()) for sample in first}) == count


@every_graph
def test_float_results_pass_the_metric_gates(bench: Bench, model: str, graph: str) -> None:
    samples = bench.samples(model, graph, 2)
    results = bench.float_results(model, graph, samples)
    cases = [Case(sample, result, result) for sample, result in zip(samples, results, strict=True)]
    gates = document(model)["checks"]["metrics"][graph]
    for values in bench.evaluate(model, graph, cases):
        assert set(values) == set(gates)
        assert [name for name, gate in gates.items() if not _passes(values[name], gate)] == []


def _passes(value: Any, gate: Any) -> bool:
    """`equal` and `max_drop` compare with the float result, which is what is judged here."""
    bounds = gate if isinstance(gate, dict) else {}
    return bool(bounds.get("min", value) <= value <= bounds.get("max", value))


def _bytes(sample: dict[str, Any]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in sorted(sample.items())}
