"""Words of a photographed page, as ddddocr cuts them: grey, 64 pixels high."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# left, top, right, bottom in pixels of the page; none is wider than 384 pixels at a height of 64
WORDS = (
    (178, 86, 226, 103),  # object
    (4, 8, 148, 36),  # Region-based
    (86, 48, 162, 66),  # determine
    (250, 84, 340, 102),  # background.
    (86, 66, 191, 84),  # These markers
    (3, 114, 88, 136),  # histogram of
)


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yields `count` dicts (at most one per entry of WORDS): ``input1`` float32 [1, 1, 64, width], 0 black, 1 white.

    A word is scaled to the height; the paper right of it is white up to the bucket's width.
    """
    page = Image.open(sources["page"]).convert("L")
    height, width = inputs["input1"][2:]
    for box in WORDS[:count]:
        word = page.crop(box)
        used = min(width, int(word.width * height / word.height))
        x = np.ones(inputs["input1"], np.float32)
        x[0, 0, :, :used] = np.asarray(word.resize((used, height), Image.Resampling.LANCZOS), np.float32) / 255
        yield {"input1": x}
