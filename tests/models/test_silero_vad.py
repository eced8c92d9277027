"""The detector hears speech where there is speech, from the state a stream would have brought it to."""

import wave

import numpy as np
import onnxruntime as ort
import pytest
from tests.models.bench import Bench, Case, Tensors

MODEL, GRAPH = "silero-vad", "vad"
FIRST_SPEECH = 11  # the chunk of beckett.wav in which the voice comes in, 0.35 s after the start


@pytest.fixture(scope="module")
def samples(bench: Bench) -> list[Tensors]:
    return bench.samples(MODEL, GRAPH, 16)


def test_float_model_hears_speech_and_silence_in_turn(bench: Bench, samples: list[Tensors]) -> None:
    results = bench.float_results(MODEL, GRAPH, samples)
    probabilities = [float(result["output"][0, 0]) for result in results]
    assert min(probabilities[0::2]) > 0.6
    assert max(probabilities[1::2]) < 0.4


def test_windows_and_states_are_those_of_the_stream(bench: Bench, samples: list[Tensors]) -> None:
    sources = bench.sources(MODEL)
    with wave.open(str(sources["recording"])) as wav:
        assert (wav.getframerate(), wav.getnchannels(), wav.getsampwidth()) == (16000, 1, 2)
        audio = np.frombuffer(wav.readframes(wav.getnframes()), "<i2").astype(np.float32) / 32768
    session = ort.InferenceSession(sources["weights"], providers=["CPUExecutionProvider"])
    state = np.zeros((2, 1, 128), np.float32)
    padded = np.concatenate([np.zeros(64, np.float32), audio])
    for begin in range(0, FIRST_SPEECH * 512, 512):
        _, state = session.run(None, {"input": padded[np.newaxis, begin : begin + 576], "state": state})
    begin = FIRST_SPEECH * 512
    np.testing.assert_array_equal(samples[0]["input"][0], audio[begin - 64 : begin + 512])
    np.testing.assert_allclose(samples[0]["state"], state, atol=1e-4)
    assert np.abs(state).max() > 1  # far from the zeros of a stream's start
    np.testing.assert_array_equal(samples[1]["input"][0, 64:], audio[:512])
    assert not samples[1]["state"].any()


def test_metric_is_the_decision_and_the_distance(bench: Bench, samples: list[Tensors]) -> None:
    speech, silence = bench.float_results(MODEL, GRAPH, samples[:2])
    cases = [Case(samples[0], speech, speech), Case(samples[0], silence, speech)]
    same, flipped = bench.evaluate(MODEL, GRAPH, cases)
    assert same == {"speech": True, "probability_error": 0.0}
    assert flipped["speech"] is False
    assert flipped["probability_error"] == pytest.approx(float(speech["output"][0, 0] - silence["output"][0, 0]))
