"""What runs outside MTCNN's graphs: sizes of a picture, boxes, crops. Boxes are left, top, right, bottom in pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float32]

# P-net sees faces of 12 pixels, so it gets the picture in several sizes, side by side on one canvas of 160 x 352:
# scale, left, top. A network of fixed shape then needs one run instead of one for each size.
PYRAMID = ((0.3, 0, 0), (0.2127, 154, 0), (0.1508, 264, 0), (0.1069, 264, 80), (0.0758, 154, 112))
STRIDE, CELL = 2, 12  # of P-net: pixels between its cells, and pixels that each looks at


@dataclass(frozen=True)
class Found:
    """Boxes float32 [n, 4] and their scores [n], best first."""

    boxes: Floats
    scores: Floats


def picture(file: Path) -> Image.Image:
    """The photograph in RGB."""
    return Image.open(file).convert("RGB")


def canvas(image: Image.Image, shape: tuple[int, ...]) -> Floats:
    """What P-net takes: the picture in the sizes of PYRAMID on grey, float32 [1, 3, height, width] in -1…1."""
    pixels = np.zeros((shape[2], shape[3], 3), np.float32)
    for scale, left, top in PYRAMID:
        small = _numbers(image.resize(_size(image, scale), Image.Resampling.BOX))
        pixels[top : top + small.shape[0], left : left + small.shape[1]] = small
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))[np.newaxis]


def crops(image: Image.Image, boxes: Floats, shape: tuple[int, ...]) -> Floats:
    """What R-net and O-net take: one crop a box, scaled, float32 [n, 3, size, size]; unused places stay 0."""
    batch = np.zeros(shape, np.float32)
    for place, box in enumerate(boxes[: shape[0]]):
        whole = [round(float(edge)) for edge in box]
        crop = image.crop((whole[0], whole[1], max(whole[2], whole[0] + 1), max(whole[3], whole[1] + 1)))
        batch[place] = _numbers(crop.resize((shape[3], shape[2]), Image.Resampling.BOX)).transpose(2, 0, 1)
    return batch


def candidates(image: Image.Image, offsets: Floats, probabilities: Floats, threshold: float) -> Found:
    """P-net's boxes in pixels of the picture: cells over the threshold that look at one size of it, best first."""
    rows, columns = np.nonzero(probabilities[0, 1] > threshold)
    boxes, scores = [], []
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        x, y = column * STRIDE, row * STRIDE
        for scale, left, top in PYRAMID:
            width, height = _size(image, scale)
            if left <= x and x + CELL <= left + width and top <= y and y + CELL <= top + height:
                corner = np.array([x - left, y - top, x - left + CELL, y - top + CELL]) / scale
                boxes.append(corner + offsets[0, :, row, column] * CELL / scale)
                scores.append(probabilities[0, 1, row, column])
    return best(np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32), 0.6)


def best(boxes: Floats, scores: Floats, overlap: float) -> Found:
    """Non-maximum suppression: the best boxes, without those that cover a better one by more than `overlap`."""
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        if not kept or iou(boxes[[index]], boxes[kept]).max() <= overlap:
            kept.append(int(index))
    return Found(boxes[kept], scores[kept])


def refined(boxes: Floats, offsets: Floats) -> Floats:
    """Boxes moved by a network's offsets, which are in shares of the box's width and height."""
    sizes = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
    return (boxes + offsets * sizes).astype(np.float32)


def squares(boxes: Floats) -> Floats:
    """The smallest squares around the boxes' centres that hold them."""
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    half = (boxes[:, 2:] - boxes[:, :2]).max(axis=1, keepdims=True) / 2
    return np.concatenate([centres - half, centres + half], axis=1).astype(np.float32)


def iou(first: Floats, second: Floats) -> Floats:
    """Intersection over union of every box with every other: float32 [len(first), len(second)]."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    common = np.prod(np.clip(high - low, 0, None), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (first, second)]
    shares: Floats = common / np.maximum(areas[0][:, None] + areas[1][None, :] - common, 1e-9)
    return shares


def _size(image: Image.Image, scale: float) -> tuple[int, int]:
    return int(image.width * scale), int(image.height * scale)


def _numbers(image: Image.Image) -> Floats:
    return (np.asarray(image, np.float32) - np.float32(127.5)) / np.float32(128)
