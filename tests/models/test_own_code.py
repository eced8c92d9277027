"""The code of models whose files are too large to fetch for a test, on small inputs made here."""

from __future__ import annotations

import importlib.util
import struct
import sys
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.models.bench import MODELS


@contextmanager
def code(model: str, *names: str) -> Iterator[Any]:
    """Modules of a model's folder, imported as the runner imports them, and forgotten afterwards."""
    folder = MODELS / model
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        loaded = [_load(folder / f"{name}.py") for name in names]
        yield loaded[0] if len(loaded) == 1 else loaded
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def _load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def test_boxes_of_yolox_are_decoded_and_doubles_dropped() -> None:
    cells = np.zeros((3549, 6), np.float32)
    # Cell 52 · 2 + 3 of the finest grid: centre (3.5, 2.25) · 8, size e^0 · 8 x e^1 · 8; the next one nearly the same.
    cells[107] = [0.5, 0.25, 0, 1, 0.9, 0.8]
    cells[108] = [-0.5, 0.25, 0, 1, 0.9, 0.7]
    cells[3548] = [0.5, 0.5, 0, 0, 1, 0.05]  # below the threshold
    with code("ddddocr-det", "metric") as metric:
        boxes, scores = metric._detect(cells, 416)
        np.testing.assert_allclose(boxes, [[24, 18 - 4 * np.e, 32, 18 + 4 * np.e]], rtol=1e-5)
        np.testing.assert_allclose(scores, [0.72])
        values = metric.evaluate(
            graph="det",
            inputs={"images": np.zeros((1, 3, 416, 416), np.float32)},
            outputs={"output": np.zeros((1, 3549, 6), np.float32)},
            reference={"output": cells[np.newaxis]},
            sources={},
        )
        assert values == {"boxes": 0, "iou": 0.0, "score_error": 1.0}


def test_words_are_split_into_the_longest_pieces_of_the_vocabulary() -> None:
    words = ["[CLS]", "[SEP]", "[UNK]", "play", "##ing", "##in", "a", ".", "cafe", "##g"]
    vocabulary = {word: number for number, word in enumerate(words)}
    with code("minilm-l6", "data") as data:
        pieces = [words[number] for number in data._pieces("Playing a Café. Xyz", vocabulary)]
    assert pieces == ["[CLS]", "play", "##ing", "a", "cafe", ".", "[UNK]", "[SEP]"]


def gguf_file(path: Path) -> Path:
    """A file with a few facts and one tensor of each kind."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def texts(values: list[str]) -> bytes:
        return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))

    pieces = ["a", "b", "c", "ab", "Ġ", "Ġc", "abĠ"]
    facts = [
        text("general.name") + struct.pack("<I", 8) + text("tiny"),
        text("heads") + struct.pack("<II", 4, 9),
        text("tokenizer.ggml.tokens") + texts(pieces),
        text("tokenizer.ggml.merges") + texts(["Ġ c", "a b"]),
    ]
    plain = np.arange(6, dtype="<f4").tobytes().ljust(32, b"\0")
    q8 = np.float16(0.5).tobytes() + np.arange(-16, 16, dtype=np.int8).tobytes()
    q4 = np.float16(2).tobytes() + np.float16(-1).tobytes() + bytes(range(16))
    entries = [("plain", (3, 2), 0, 0), ("q8", (32,), 8, 32), ("q4", (32,), 3, 32 + 64)]
    head = b"".join(
        text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, place)
        for name, shape, kind, place in entries
    )
    content = b"GGUF" + struct.pack("<IQQ", 3, len(entries), len(facts)) + b"".join(facts) + head
    content += b"\0" * (-len(content) % 32) + plain + q8.ljust(64, b"\0") + q4
    path.write_bytes(content)
    return path


def test_gguf_facts_and_tensors_of_each_kind_are_read(tmp_path: Path) -> None:
    with code("smollm2-135m", "gguf") as gguf:
        file = gguf.read(gguf_file(tmp_path / "tiny.gguf"))
        assert (file.facts["general.name"], file.facts["heads"]) == ("tiny", 9)
        assert file.tensor("plain").tolist() == [[0, 1, 2], [3, 4, 5]]  # rows first
        assert file.tensor("q8").tolist() == [step / 2 for step in range(-16, 16)]
        assert file.tensor("q4")[:3].tolist() == [-1, 1, 3]  # the low halves
        assert file.tensor("q4")[16:].tolist() == [-1] * 16  # the high ones
        (tmp_path / "other").write_bytes(b"GGML" + bytes(64))
        with pytest.raises(ValueError, match="no GGUF file"):
            gguf.read(tmp_path / "other")


def test_text_is_merged_by_rank(tmp_path: Path) -> None:
    with code("smollm2-135m", "gguf", "data") as (gguf, data):
        file = gguf.read(gguf_file(tmp_path / "tiny.gguf"))
        words = file.facts["tokenizer.ggml.tokens"]
        assert [words[number] for number in data.tokens("abc cab", file)] == ["ab", "c", "Ġc", "ab"]


def test_bands_of_the_voice_encoder_follow_a_tone(tmp_path: Path) -> None:
    path = tmp_path / "tone.wav"
    with wave.open(str(path), "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(16000)
        time = np.arange(16000) / 16000
        wav.writeframes((3000 * np.sin(2 * np.pi * 1000 * time)).astype("<i2").tobytes())
    with code("resemblyzer", "data") as data:
        mels = data.spectrogram(path)
        filters = data._filters()
    assert mels.shape == (101, 40)
    # 1000 Hz is mel 15 of 45.2 (Slaney): 40 bands put their peaks 1.1 apart.
    assert set(mels[10:90].argmax(axis=1)) == {13}
    assert filters.shape == (40, 201)
    widths = (filters > 0).sum(axis=1)
    assert widths[0] <= 3 < widths[-1]
    assert data.starts(1000, 3) == [0, 420, 840]


def test_pitch_is_the_mean_around_the_best_bin() -> None:
    activation = np.zeros((3, 360), np.float32)
    activation[0, 99:102] = [0.3, 0.9, 0.3]
    activation[1, 100:102] = [0.8, 0.8]
    activation[2, 50] = 0.2  # not voiced
    moved = activation.copy()
    moved[0, 101] = 0.6
    with code("crepe-tiny", "metric") as metric:
        values = metric.evaluate(
            graph="crepe", inputs={}, outputs={"activation": moved}, reference={"activation": activation}, sources={}
        )
    assert values["voiced_share"] == pytest.approx(2 / 3)
    assert values["same_bin"] == 1.0
    assert values["cents"] == pytest.approx(20 * (0.3 * 99 + 0.9 * 100 + 0.6 * 101) / 1.8 - 2000)


def test_a_copy_of_the_sound_has_no_error_and_one_tenth_off_has_20_db() -> None:
    truth = np.random.default_rng(0).normal(0, 1, (1, 1, 512)).astype(np.float32)
    with code("dtln", "metric") as metric:
        assert metric.snr(truth, truth) == 120.0
        assert metric.snr(truth * np.float32(1.1), truth) == pytest.approx(20, abs=0.01)


def test_ranking_counts_the_pairs_that_keep_their_order() -> None:
    truth = np.eye(4, dtype=np.float32) + np.float32(0.1) * np.arange(4, dtype=np.float32)
    swapped = truth[[0, 1, 3, 2]]
    with code("minilm-l6", "metric") as metric:
        same, other = (
            metric.evaluate(
                graph="encoder", inputs={}, outputs={"sentences": found}, reference={"sentences": truth}, sources={}
            )
            for found in (truth * 2, swapped)
        )
    assert (same["similarity"], same["ranking"]) == (pytest.approx(1.0), 1.0)
    assert same["nearest"] == "3 3 3 2"
    assert other["nearest"] != same["nearest"]
    assert float(other["ranking"]) == pytest.approx(22 / 24)  # sentence 0 finds 2 and 3 in the other order, and so 1
