"""Blocks of a voice in noise, each with the state that a stream would bring to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import stream


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[stream.Tensors]:
    """Yields `count` dicts, spread evenly over the recording between its first and its last second.

    ``mask``: ``input_2`` float32 [1, 1, 257], magnitudes of a block's spectrum, and ``input_3`` [1, 2, 128, 2], the
    state. ``time``: ``input_4`` float32 [1, 1, 512], the block under the float network's mask
    (see stream.GAIN), and ``input_5``.
    """
    every = steps(sources)
    for place in places(len(every), count):
        yield every[place][graph]


def steps(sources: dict[str, Path]) -> list[dict[str, stream.Tensors]]:
    """What goes into both float networks at every block of the recording."""
    _, audio = stream.recording(sources["recording"])
    return list(stream.steps(audio, sources["mask"], sources["time"]))


def places(blocks: int, count: int) -> list[int]:
    """The blocks that are samples; the last ones of the recording are left for a stream to go on to."""
    first, last = 16000 // stream.SHIFT, blocks - 16000 // stream.SHIFT
    return [first + (last - first) * k // max(count - 1, 1) for k in range(count)]
