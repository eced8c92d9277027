"""Blocks of a voice in noise, each with the state that a stream would bring to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import stream


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[stream.Tensors]:
    """Yields `count` dicts, spread evenly over the recording after its first second.

    ``mask``: ``input_2`` float32 [1, 1, 257], magnitudes of a block's spectrum, and ``input_3`` [1, 2, 128, 2], the
    state. ``time``: ``input_4`` float32 [1, 1, 512], the block under the float network's mask, and ``input_5``.
    """
    _, audio = stream.recording(sources["recording"])
    steps = list(stream.steps(audio, sources["mask"], sources["time"]))
    start = 16000 // stream.SHIFT
    for k in range(count):
        yield steps[start + (len(steps) - 1 - start) * k // max(count - 1, 1)][graph]
