"""The models of this repository: prepared and original are the same function on ONNX Runtime's CPU provider."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from qnn.model.spec import InputSpec
from tests.models.bench import Bench, document, shapes
from tests.prepare.graphs import Array, operators, prepared, run

GRAPHS = [("silero-vad", "vad"), ("ppocr-v4", "det"), ("ppocr-v4", "rec"), ("speech-embedding", "embedding")]


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(request.config.cache.mkdir("model-sources"), tmp_path_factory.mktemp("models"))


def relative_difference(expected: Array, got: Array) -> float:
    """Largest difference of two outputs in units of the largest value (1 where that is smaller)."""
    return float(np.abs(expected - got).max() / max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize(("name", "graph"), GRAPHS)
def test_prepared_and_original_agree(bench: Bench, tmp_path: Path, name: str, graph: str) -> None:
    """Within 1e-6: exact but for sums that ONNX Runtime orders otherwise once a weight is a constant (the LSTM)."""
    source = bench.sources(name)[document(name)["graphs"][graph]["source"]]
    inputs = shapes(name, graph)
    facts, after = prepared(source, tmp_path, [InputSpec(key, shape) for key, shape in inputs.items()])
    assert {tensor.name: tensor.shape for tensor in facts.inputs} == inputs
    onnx.checker.check_model(after, full_check=True)
    assert not set(operators(after)) & {"Constant", "Shape", "If"}
    random = np.random.default_rng(11)
    for _ in range(2):
        feeds = {key: random.standard_normal(shape).astype(np.float32) for key, shape in inputs.items()}
        before, behind = run(source, feeds), run(after, feeds)
        assert [array.shape for array in behind] == [tensor.shape for tensor in facts.outputs]
        assert max(relative_difference(a, b) for a, b in zip(before, behind, strict=True)) < 1e-6


def test_two_preparations_are_the_same_bytes(bench: Bench, tmp_path: Path) -> None:
    source = bench.sources("ppocr-v4")["rec"]
    specs = [InputSpec(key, shape) for key, shape in shapes("ppocr-v4", "rec").items()]
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    (copy / "other.onnx").write_bytes(source.read_bytes())
    prepared(source, tmp_path, specs, output="one")
    prepared(copy / "other.onnx", tmp_path, specs, output="two")
    for file in ("net.onnx", "prepared.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
