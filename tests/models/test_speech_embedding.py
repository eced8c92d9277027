"""Embeddings tell moments of the recording apart, and the metric measures how well that survives."""

import numpy as np
import pytest
from tests.models.bench import Bench, Case, Tensors

MODEL, GRAPH = "speech-embedding", "embedding"


@pytest.fixture(scope="module")
def samples(bench: Bench) -> list[Tensors]:
    return bench.samples(MODEL, GRAPH, 8)


@pytest.fixture(scope="module")
def embeddings(bench: Bench, samples: list[Tensors]) -> list[Tensors]:
    return bench.float_results(MODEL, GRAPH, samples)


def test_mel_features_lie_where_the_network_expects_them(samples: list[Tensors]) -> None:
    frames = np.stack([sample["input_1"] for sample in samples])
    # -80 dB below the loudest is the front end's floor; /10 + 2 of int16-scale power ends near 11.
    assert 3 < frames.min() < frames.mean() < frames.max() < 12
    assert frames.max() - frames.min() <= 8.001


def test_moments_of_the_recording_differ(embeddings: list[Tensors]) -> None:
    units = np.stack([embedding["conv2d_19"].ravel() for embedding in embeddings])
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    similarities = units @ units.T
    assert np.diag(similarities) == pytest.approx(1.0)
    others = similarities[~np.eye(len(units), dtype=bool)]
    assert 0.4 < others.min() < 0.7
    assert others.max() < 0.99


def test_metric_of_the_same_embedding_another_and_a_longer_one(
    bench: Bench, samples: list[Tensors], embeddings: list[Tensors]
) -> None:
    truth, other = embeddings[2], embeddings[0]
    longer = {"conv2d_19": truth["conv2d_19"] * np.float32(1.1)}
    cases = [Case(samples[2], outputs, truth) for outputs in (truth, other, longer)]
    same, different, scaled = bench.evaluate(MODEL, GRAPH, cases)
    assert same == {"similarity": pytest.approx(1.0), "length_error": 0.0, "ranking": 1.0}
    assert float(different["similarity"]) < 0.8
    assert float(different["ranking"]) < 0.9
    assert scaled == {"similarity": pytest.approx(1.0), "length_error": pytest.approx(0.1, abs=1e-5), "ranking": 1.0}


def test_opposite_embedding_turns_the_ranking_round(
    bench: Bench, samples: list[Tensors], embeddings: list[Tensors]
) -> None:
    truth = embeddings[2]
    (values,) = bench.evaluate(MODEL, GRAPH, [Case(samples[2], {"conv2d_19": -truth["conv2d_19"]}, truth)])
    assert values["ranking"] == 0.0
    assert values["similarity"] == pytest.approx(-1.0)
