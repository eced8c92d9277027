"""Files of many kinds, as magika reads them: their first and last kilobyte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

READ, KEPT = 4096, 1024  # bytes that are read at each end; of these, how many are kept without white space around them
PADDING = 256  # stands where there are no more bytes

# Sources that are not what they are for anything else than their kind.
FILES = ("python-file", "yaml-file", "picture", "weights", "recording", "text-file", "labels", "markdown-file")


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[np.int32]]]:
    """Yields `count` dicts (at most one per entry of FILES): ``bytes`` int32 [1, 2048], 0…255 or PADDING."""
    for name in FILES[:count]:
        content = sources[name].read_bytes()
        first, last = content[:READ].lstrip()[:KEPT], content[-READ:].rstrip()[-KEPT:]
        row = np.full(2 * KEPT, PADDING, np.int32)
        row[: len(first)] = list(first)
        row[2 * KEPT - len(last) :] = list(last)
        yield {"bytes": row.reshape(inputs["bytes"])}
