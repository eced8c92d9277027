"""A photographed page of print, cut and normalised as PP-OCR does it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# ImageNet's mean and deviation, which PP-OCR's detector was trained with. In OpenCV's channel order (blue first):
# PP-OCR applies them as they stand to BGR images. The page is grey, so all three channels hold the same picture.
MEAN = np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)

# left, top, right, bottom in pixels of the page
LINES = (
    (4, 8, 148, 36),  # Region-based
    (86, 66, 191, 84),  # These markers
    (250, 84, 340, 102),  # background.
    (3, 114, 88, 136),  # histogram of
    (178, 86, 226, 103),  # object
    (86, 48, 162, 66),  # determine
)


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yields `count` dicts (for ``rec`` at most one per entry of LINES): ``x`` float32 [1, 3, height, width].

    ``det``: the largest crops of the page with the bucket's aspect, moving from its left to its right edge.
    ``rec``: words of the page, scaled to the bucket's height; the rest of the width stays 0, as in PP-OCR.
    """
    page = Image.open(sources["page"]).convert("L")
    if graph == "det":
        height, width = inputs["x"][2:]
        for k in range(count):
            crop = window(page, height, width, k / max(count - 1, 1))
            yield {"x": ((_pixels(crop, height, width) - MEAN) / DEVIATION)[np.newaxis]}
    else:
        for box in LINES[:count]:
            yield line(page.crop(box), inputs["x"])


def line(picture: Image.Image, shape: tuple[int, ...]) -> dict[str, NDArray[np.float32]]:
    """The recogniser's input: the picture scaled to the height, the rest of the width 0, as in PP-OCR."""
    height, width = shape[2:]
    used = min(width, round(height * picture.width / picture.height))
    x = np.zeros(shape, np.float32)
    x[0, :, :, :used] = (_pixels(picture, height, used) - 0.5) / 0.5
    return {"x": x}


def window(page: Image.Image, height: int, width: int, position: float) -> Image.Image:
    """The largest part of the page with that aspect; `position` 0 is its left (or top) end, 1 the other."""
    scale = min(page.width / width, page.height / height)
    crop_width, crop_height = round(width * scale), round(height * scale)
    left, top = round((page.width - crop_width) * position), round((page.height - crop_height) * position)
    return page.crop((left, top, left + crop_width, top + crop_height))


def _pixels(image: Image.Image, height: int, width: int) -> NDArray[np.float32]:
    """The image scaled, as float32 [3, height, width] in 0…1."""
    grey = np.asarray(image.resize((width, height), Image.Resampling.BICUBIC), np.float32) / 255
    return np.broadcast_to(grey, (3, height, width))
