"""Pictures with text as ddddocr's detector gets them: 416 x 416, blue first, grey below and to the right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PADDING = 114  # YOLOX's grey
PICTURES = ("page", "text")


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yields `count` dicts (at most one per entry of PICTURES): ``images`` float32 [1, 3, 416, 416] in 0…255.

    The picture is scaled to fit, as YOLOX does it, and stands in the upper left corner.
    """
    height, width = inputs["images"][2:]
    for name in PICTURES[:count]:
        picture = Image.open(sources[name]).convert("RGB")
        scale = min(height / picture.height, width / picture.width)
        size = (int(picture.width * scale), int(picture.height * scale))
        canvas = np.full((height, width, 3), PADDING, np.float32)
        canvas[: size[1], : size[0]] = np.asarray(picture.resize(size, Image.Resampling.BILINEAR), np.float32)
        yield {"images": np.ascontiguousarray(canvas[:, :, ::-1].transpose(2, 0, 1))[np.newaxis]}
