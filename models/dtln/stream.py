"""DTLN as its authors run it: blocks of 512 samples every 128, a mask on the spectrum, then a second pass in time."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = dict[str, Floats]

BLOCK, SHIFT = 512, 128  # samples at 16 kHz: 32 ms every 8 ms
# The second network takes its block this many times louder, and its sound is divided by as much. It normalises what it
# gets, so float does not care (90 dB below the sound over 5 s), but the variances of quiet blocks are below what fp16
# can hold: at a gain of 1 such blocks come out 2 dB above their error.
GAIN = np.float32(64)
NOISE = 0.02  # deviation of the noise that is mixed in: about 10 dB below the voice


def recording(file: Path) -> tuple[Floats, Floats]:
    """The voice, 16 kHz mono in -1…1, and the same with noise whose power falls with the frequency, as a fan's does."""
    with wave.open(str(file)) as wav:
        voice = np.frombuffer(wav.readframes(wav.getnframes()), "<i2").astype(np.float32) / np.float32(32768)
    white = np.random.default_rng(7).standard_normal(len(voice))
    spectrum = np.fft.rfft(white) / np.sqrt(np.arange(len(voice) // 2 + 1) + 100)
    noise = np.fft.irfft(spectrum, len(voice))
    return voice, (voice + NOISE * noise / noise.std()).astype(np.float32)


def blocks(audio: Floats) -> Floats:
    """Every block of the audio: float32 [n, 512]."""
    return np.lib.stride_tricks.sliding_window_view(audio, BLOCK)[::SHIFT]


def spectrum(block: Floats) -> Floats:
    """What the first network takes: the magnitude of the block's spectrum, float32 [1, 1, 257]."""
    return np.abs(np.fft.rfft(block)).astype(np.float32).reshape(1, 1, -1)


def masked(block: Floats, mask: Floats) -> Floats:
    """What the second network takes: the block with its spectrum under the mask, times GAIN, float32 [1, 1, 512]."""
    return GAIN * np.fft.irfft(np.fft.rfft(block) * mask.reshape(-1)).astype(np.float32).reshape(1, 1, -1)


def steps(audio: Floats, mask_model: Path, time_model: Path) -> Iterator[dict[str, Tensors]]:
    """For every block what goes into each network, by graph, with the states that the float networks carry there."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # the same sums in the same order, however many cores there are
    files = (mask_model, time_model)
    mask, time = (ort.InferenceSession(file, options, providers=["CPUExecutionProvider"]) for file in files)
    states = [np.zeros((1, 2, 128, 2), np.float32) for _ in range(2)]
    for block in blocks(audio):
        first = {"input_2": spectrum(block), "input_3": states[0]}
        gain, states[0] = mask.run(["activation_2", "tf_op_layer_stack_2"], first)
        second = {"input_4": masked(block, gain), "input_5": states[1]}
        _, states[1] = time.run(["conv1d_3", "tf_op_layer_stack_5"], second)
        yield {"mask": first, "time": second}
