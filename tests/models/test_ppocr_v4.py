"""The page's lines are found, and the words on it are read."""

import numpy as np
import onnxruntime as ort
import pytest
from tests.models.bench import Bench, Case, Tensors

MODEL = "ppocr-v4"
WORDS = ["Region-based", "These markers", "background.", "histogram of", "object", "determine"]  # what a person reads


@pytest.fixture(scope="module")
def lines(bench: Bench) -> list[Tensors]:
    return bench.samples(MODEL, "rec", len(WORDS))


def test_float_model_reads_the_words_of_the_page(bench: Bench, lines: list[Tensors]) -> None:
    results = bench.float_results(MODEL, "rec", lines)
    values = bench.evaluate(
        MODEL, "rec", [Case(line, result, result) for line, result in zip(lines, results, strict=True)]
    )
    assert [value["text"] for value in values] == WORDS
    assert all(0.97 < float(value["confidence"]) <= 1 for value in values)


def test_words_fill_the_height_and_leave_the_rest_of_the_width_empty(lines: list[Tensors]) -> None:
    word = lines[WORDS.index("object")]["x"][0]
    used = round(48 * (226 - 178) / (103 - 86))
    assert np.abs(word[:, :, :used]).max(axis=(0, 1)).min() > 0.1
    assert not word[:, :, used:].any()


def test_pixels_are_normalised_as_each_network_was_trained(bench: Bench, lines: list[Tensors]) -> None:
    word = lines[WORDS.index("object")]["x"]
    assert -1 <= word.min() < -0.6  # black is -1
    assert 0.6 < word.max() <= 1  # white is 1
    (half,) = bench.samples(MODEL, "det", 1)
    blue, green, red = half["x"][0]
    grey = blue * 0.229 + 0.485
    np.testing.assert_allclose(green * 0.224 + 0.456, grey, atol=1e-6)
    np.testing.assert_allclose(red * 0.225 + 0.406, grey, atol=1e-6)
    assert 0 <= grey.min() < 0.2
    assert 0.8 < grey.max() <= 1


def test_characters_are_those_of_the_recogniser(bench: Bench) -> None:
    sources = bench.sources(MODEL)
    session = ort.InferenceSession(sources["rec"], providers=["CPUExecutionProvider"])
    own = session.get_modelmeta().custom_metadata_map["character"].split("\n")
    published = sources["characters"].read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert published == own
    (output,) = session.get_outputs()
    assert output.shape[-1] == len(published) + 2  # the blank before them, a space after


def test_a_greedy_reading_merges_repeats_and_keeps_what_a_blank_parts(bench: Bench, lines: list[Tensors]) -> None:
    characters = bench.sources(MODEL)["characters"].read_text(encoding="utf-8").split("\n")
    a, space = characters.index("a") + 1, len(characters)
    steps = [0, a, a, 0, a, space, space, a, 0]
    probabilities = np.full((1, len(steps), len(characters) + 1), 1e-5, np.float32)
    probabilities[0, np.arange(len(steps)), steps] = 0.9
    nothing = np.zeros_like(probabilities)
    nothing[..., 0] = 1
    result, blank = ({"softmax_11.tmp_0": array} for array in (probabilities, nothing))
    read, empty = bench.evaluate(MODEL, "rec", [Case(lines[0], result, result), Case(lines[0], blank, blank)])
    assert read == {"text": "aa a", "confidence": pytest.approx(0.9)}
    assert empty == {"text": "", "confidence": 0.0}


def test_float_model_finds_every_line_of_the_page(bench: Bench) -> None:
    halves = bench.samples(MODEL, "det", 2)
    assert all(np.ptp(half["x"]) > 2 for half in halves)
    masks = [result["sigmoid_0.tmp_0"][0, 0] > 0.3 for result in bench.float_results(MODEL, "det", halves)]
    # The left half holds the heading, five lines of text and the line of code; the right half misses the fifth.
    assert [_bands(mask) for mask in masks] == [7, 6]


def test_iou_counts_the_cells_both_masks_share(bench: Bench) -> None:
    (half,) = bench.samples(MODEL, "det", 1)
    truth, shifted, nothing = (np.zeros((1, 1, 320, 320), np.float32) for _ in range(3))
    truth[..., 100:200, :] = 0.31
    truth[..., 210:220, :] = 0.29  # below the threshold
    shifted[..., 150:250, :] = 1
    pairs = [(truth, truth), (shifted, truth), (nothing, truth), (nothing, nothing)]
    cases = [Case(half, {"sigmoid_0.tmp_0": out}, {"sigmoid_0.tmp_0": reference}) for out, reference in pairs]
    assert [value["iou"] for value in bench.evaluate(MODEL, "det", cases)] == [1.0, pytest.approx(1 / 3), 0.0, 1.0]


def _bands(mask: np.ndarray) -> int:
    """Runs of rows in which more than 15 % of the width is text."""
    dense = mask.mean(axis=1) > 0.15
    return int(dense[0]) + int((dense[1:] & ~dense[:-1]).sum())
