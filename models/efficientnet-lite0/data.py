"""Photographs from scikit-image, scaled and cut to the square in their middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PHOTOGRAPHS = ("cat", "coffee", "rocket", "astronaut")


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yields `count` dicts (at most one per entry of PHOTOGRAPHS): ``image`` float32 [1, 3, 224, 224], about -1…1."""
    size = inputs["image"][2]
    for name in PHOTOGRAPHS[:count]:
        photograph = Image.open(sources[name]).convert("RGB")
        side = min(photograph.size)
        left, top = (photograph.width - side) // 2, (photograph.height - side) // 2
        square = photograph.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
        pixels = (np.asarray(square, np.float32) - np.float32(127)) / np.float32(128)
        yield {"image": np.ascontiguousarray(pixels.transpose(2, 0, 1))[np.newaxis]}
