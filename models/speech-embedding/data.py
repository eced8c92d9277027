"""Mel windows of real speech, made by the front end that belongs to the network."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yields `count` dicts: ``input_1`` float32 [1, 76, 32, 1], 76 frames (0.76 s) of 32 mel bands.

    The windows are spread evenly over the recording, from its start to its end.
    """
    shape = inputs["input_1"]
    frames = _mel(sources["recording"], sources["frontend"])
    for k in range(count):
        start = (len(frames) - shape[1]) * k // max(count - 1, 1)
        yield {"input_1": frames[start : start + shape[1]].reshape(shape)}


def _mel(recording: Path, frontend: Path) -> NDArray[np.float32]:
    """Mel features of a 16 kHz mono recording, one row of 32 every 10 ms.

    As openWakeWord feeds it: samples in the range of int16, and decibels / 10 + 2. The front end stays on the CPU:
    the squares of such samples do not fit fp16.
    """
    with wave.open(str(recording)) as wav:
        audio = np.frombuffer(wav.readframes(wav.getnframes()), "<i2").astype(np.float32)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # the same sums in the same order, however many cores there are
    session = ort.InferenceSession(frontend, options, providers=["CPUExecutionProvider"])
    decibels: NDArray[np.float32] = session.run(None, {"input": audio[np.newaxis]})[0]
    return decibels.reshape(-1, decibels.shape[-1]) / np.float32(10) + np.float32(2)
