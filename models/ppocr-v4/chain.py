"""From the detector's mask to the lines the recogniser reads, as PP-OCR does it, for a page that lies straight."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import data
import metric
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float32]
Box = tuple[int, int, int, int]  # left, top, right, bottom
Run = tuple[dict[str, Floats], dict[str, Floats]]

UNCLIP = 1.5  # PP-OCR's masks are shrunk text: a box grows by this times its area over its perimeter
SMALLEST = 3  # pixels
READ = 1  # lines that are read: the emulator takes ten seconds for each, and this model is the demo


def feed(
    *, graph: str, turn: int, inputs: dict[str, tuple[int, ...]], runs: dict[str, list[Run]], sources: dict[str, Path]
) -> Iterator[dict[str, Floats]]:
    """For ``rec``, what is found in the first picture: ``x`` float32 [1, 3, 48, width], the READ largest boxes, from
    the top down (by size their order would change with a pixel).

    The pixels are the page's own, not the detector's scaled ones. What is right of a short line stays 0.
    """
    found, mask = runs["det"][0]
    height, width = next(iter(found.values())).shape[2:]
    window = data.window(Image.open(sources["page"]).convert("L"), height, width, 0)
    largest = _boxes(next(iter(mask.values()))[0, 0] > metric.TEXT)[:READ]
    for box in sorted(largest, key=lambda box: (box[1], box[0])):
        left, top, right, bottom = (
            edge * size / full for edge, size, full in zip(box, 2 * window.size, 2 * (width, height), strict=True)
        )
        yield data.line(window.crop((round(left), round(top), round(right), round(bottom))), inputs["x"])


def evaluate(
    *, runs: dict[str, list[Run]], reference: dict[str, list[Run]], sources: dict[str, Path]
) -> dict[str, str]:
    """`text`: what is read, a line for each box, from the top down."""
    readings = (metric.read(next(iter(out.values()))[0], sources["characters"]) for _, out in runs["rec"])
    return {"text": "\n".join(text for text, _ in readings)}


def _boxes(mask: NDArray[np.bool_]) -> list[Box]:
    """Boxes around the connected parts of a mask, grown to the text they stand for, largest first."""
    left = mask.copy()
    boxes = []
    for row, column in np.argwhere(mask):
        if left[row, column]:
            top, bottom, first, last = _part(left, int(row), int(column))
            height, width = bottom - top + 1, last - first + 1
            if min(height, width) >= SMALLEST:
                grow = round(UNCLIP * height * width / (2 * (height + width)))
                box = (first - grow, top - grow, last + 1 + grow, bottom + 1 + grow)
                boxes.append(tuple(int(edge) for edge in np.clip(box, 0, 2 * mask.shape[::-1])))
    return sorted(boxes, key=lambda box: ((box[0] - box[2]) * (box[3] - box[1]), box))


def _part(left: NDArray[np.bool_], row: int, column: int) -> tuple[int, int, int, int]:
    """Takes a connected part out of the mask; its first and last row and column."""
    ends = [row, row, column, column]
    open_ = [(row, column)]
    left[row, column] = False
    while open_:
        y, x = open_.pop()
        ends = [min(ends[0], y), max(ends[1], y), min(ends[2], x), max(ends[3], x)]
        for v, u in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            if 0 <= v < left.shape[0] and 0 <= u < left.shape[1] and left[v, u]:
                left[v, u] = False
                open_.append((v, u))
    return ends[0], ends[1], ends[2], ends[3]
