"""Stretches of a speaking voice as the encoder takes them: the power in 40 mel bands every 10 ms, for 1.6 s."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

RATE, WINDOW, HOP, BANDS = 16000, 400, 160, 40
STRETCH = 160  # frames that make an embedding
LOUDNESS = 10 ** (-30 / 20)  # a recording that is quieter is made this loud: -30 dB of full scale


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, Floats]]:
    """Yields `count` dicts: the beginnings of stretches that are spread evenly over the recording.

    ``mels`` float32 [1, 40, 40], the first quarter of a stretch, and ``hidden`` and ``cell`` [3, 256], zeros.
    """
    mels = spectrogram(sources["recording"])
    for start in starts(len(mels), count):
        states = {name: np.zeros(inputs[name], np.float32) for name in ("hidden", "cell")}
        yield {"mels": quarter(mels, start, 0, inputs["mels"]), **states}


def starts(frames: int, count: int) -> list[int]:
    """Where the stretches begin."""
    return [(frames - STRETCH) * k // max(count - 1, 1) for k in range(count)]


def quarter(mels: Floats, start: int, turn: int, shape: tuple[int, ...]) -> Floats:
    """The frames of a stretch that a turn of the graph takes."""
    first = start + turn * shape[1]
    return mels[first : first + shape[1]].reshape(shape)


def spectrogram(recording: Path) -> Floats:
    """The power of a recording in each mel band, float32 [frames, 40]."""
    with wave.open(str(recording)) as wav:
        audio = np.frombuffer(wav.readframes(wav.getnframes()), "<i2").astype(np.float64) / 32768
    audio *= max(1.0, LOUDNESS / np.sqrt(np.square(audio).mean()))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(audio, WINDOW // 2), WINDOW)[::HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    power = np.square(np.abs(np.fft.rfft(windows * hann)))
    return (power @ _filters().T).astype(np.float32)


def _filters() -> NDArray[np.float64]:
    """Triangles over the spectrum, equally wide in mel and of equal area in Hz: float64 [40, 201]."""
    corners = _hertz(np.linspace(0, _mel(np.array(RATE / 2)), BANDS + 2))
    below, peak, above = (corners[first : first + BANDS, None] for first in range(3))
    frequencies = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    triangles = np.minimum((frequencies - below) / (peak - below), (above - frequencies) / (above - peak))
    filters: NDArray[np.float64] = np.maximum(triangles, 0) * 2 / (above - below)
    return filters


# Slaney's mel scale: linear up to 1000 Hz (mel 15), then logarithmic.
_LINEAR, _KNEE, _STEP = 200 / 3, 15.0, np.log(6.4) / 27


def _mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    high = _KNEE + np.log(np.maximum(hertz, 1e-9) / (_KNEE * _LINEAR)) / _STEP
    return np.where(hertz < _KNEE * _LINEAR, hertz / _LINEAR, high)


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mel < _KNEE, mel * _LINEAR, _KNEE * _LINEAR * np.exp(_STEP * (mel - _KNEE)))
