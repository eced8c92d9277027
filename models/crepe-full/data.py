"""Frames of a speaking voice, as CREPE takes them: 64 ms every 10 ms, each of mean 0 and deviation 1."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HOP = 160  # samples at 16 kHz


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yields `count` dicts: ``frames`` float32 [n, 1024], consecutive frames of the recording.

    The `count` loudest stretches that do not overlap, loudest first: a pause has no pitch to find.
    """
    number, length = inputs["frames"]
    with wave.open(str(sources["recording"])) as wav:
        audio = np.frombuffer(wav.readframes(wav.getnframes()), "<i2").astype(np.float32) / np.float32(32768)
    frames = np.lib.stride_tricks.sliding_window_view(audio, length)[::HOP]
    stretches = frames[: len(frames) // number * number].reshape(-1, number, length)
    loudness = np.square(stretches).mean(axis=(1, 2))
    for place in np.argsort(-loudness, kind="stable")[:count]:
        stretch = stretches[place] - stretches[place].mean(axis=1, keepdims=True)
        yield {"frames": (stretch / np.maximum(stretch.std(axis=1, keepdims=True), 1e-10)).astype(np.float32)}
