"""What a user of the detector sees: boxes. What makes them of the network's numbers runs outside the graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = dict[str, Floats]

STRIDES = (8, 16, 32)  # pixels between the cells of YOLOX's three grids
SCORE = 0.1  # ddddocr's thresholds: a box counts from here on,
OVERLAP = 0.45  # and is dropped where it covers a better one by more than this


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float | int]:
    """`boxes`, how many are found; `iou`, the least overlap of a box of the float model with its best match here;
    `score_error`, the greatest difference of their scores.

    Both are what they are without any box: 1.0 and 0.0 when neither model finds one, 0.0 and 1.0 when only one does.
    """
    size = inputs["images"].shape[2]
    boxes, scores = _detect(outputs["output"][0], size)
    wanted, wanted_scores = _detect(reference["output"][0], size)
    if not len(wanted) or not len(boxes):
        same = len(wanted) == len(boxes)
        return {"boxes": len(boxes), "iou": float(same), "score_error": float(not same)}
    overlaps = _iou(wanted, boxes)
    errors = np.abs(wanted_scores - scores[overlaps.argmax(axis=1)])
    return {
        "boxes": len(boxes),
        "iou": float(overlaps.max(axis=1).min()),
        "score_error": float(errors.max()),
    }


def _detect(cells: Floats, size: int) -> tuple[Floats, Floats]:
    """Boxes (left, top, right, bottom in pixels) and scores, best first, of [cells, 6] numbers: the centre's offset
    in cells, the logarithm of width and height in cells, objectness and class score."""
    grids = [np.stack(np.meshgrid(np.arange(size // s), np.arange(size // s)), 2).reshape(-1, 2) for s in STRIDES]
    stride = np.concatenate([np.full((len(grid), 1), s) for grid, s in zip(grids, STRIDES, strict=True)])
    centre = (cells[:, :2] + np.concatenate(grids)) * stride
    half = np.exp(cells[:, 2:4]) * stride / 2
    scores = cells[:, 4] * cells[:, 5]
    order = [index for index in np.argsort(-scores, kind="stable") if scores[index] > SCORE]
    boxes = np.concatenate([centre - half, centre + half], axis=1)[order].astype(np.float32)
    kept: list[int] = []
    for index in range(len(boxes)):
        if not kept or _iou(boxes[index : index + 1], boxes[kept]).max() <= OVERLAP:
            kept.append(index)
    return boxes[kept], scores[order][kept]


def _iou(first: Floats, second: Floats) -> Floats:
    """Intersection over union of every box with every other: float32 [len(first), len(second)]."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    common = np.prod(np.clip(high - low, 0, None), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (first, second)]
    overlaps: Floats = common / (areas[0][:, None] + areas[1][None, :] - common)
    return overlaps
