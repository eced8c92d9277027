"""Windows of real speech and real silence, each with the state the detector would carry into it."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

Floats = NDArray[np.float32]

CONTEXT = 64  # the last samples of the previous chunk, which silero's own wrapper puts before each chunk
UNDECIDED = 0.1  # a chunk whose float probability is this near to 0.5 has no decision that could be kept


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, Floats]]:
    """Chunks of the recording, speech and silence in turn, spread evenly over it.

    Yields `count` dicts: ``input`` float32 [1, 576] in -1…1 (64 samples of context, then a chunk of 512 at 16 kHz)
    and ``state`` float32 [2, 1, 128]. The network is recurrent, and a state of zeros or noise would test it where it
    never works; so the float model runs through the whole recording and every chunk keeps the state it met there.
    """
    kinds: tuple[list[dict[str, Floats]], list[dict[str, Floats]]] = ([], [])
    for window, probability in _stream(sources["recording"], sources["weights"], inputs):
        if abs(probability - 0.5) > UNDECIDED:
            kinds[0 if probability > 0.5 else 1].append(window)
    for k in range(count):
        kind = kinds[k % 2]
        yield kind[len(kind) * (k // 2) // ((count + 1) // 2)]


def _stream(
    recording: Path, weights: Path, inputs: dict[str, tuple[int, ...]]
) -> Iterator[tuple[dict[str, Floats], float]]:
    """Every chunk of the recording as the model's inputs, with the float model's probability of speech."""
    with wave.open(str(recording)) as wav:
        voice = np.frombuffer(wav.readframes(wav.getnframes()), "<i2").astype(np.float32) / np.float32(32768)
    audio: Floats = np.concatenate([np.zeros(CONTEXT, np.float32), voice])
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # the same sums in the same order, however many cores there are
    session = ort.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    state = np.zeros(inputs["state"], np.float32)
    width = inputs["input"][1]
    for start in range(0, len(audio) - width + 1, width - CONTEXT):
        window: dict[str, Floats] = {"input": audio[start : start + width].reshape(inputs["input"]), "state": state}
        output, state = session.run(["output", "stateN"], window)
        yield window, float(output[0, 0])
