"""MTCNN as an application runs it: what P-net finds goes to R-net, what is left to O-net."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import faces
import metric
import numpy as np
from faces import Floats

Run = tuple[dict[str, Floats], dict[str, Floats]]
Runs = dict[str, list[Run]]


def feed(
    *, graph: str, turn: int, inputs: dict[str, tuple[int, ...]], runs: Runs, sources: dict[str, Path]
) -> Iterator[dict[str, Floats]]:
    """``candidates``: the best squares of the network before, as many as the next takes, cut from the photograph."""
    image = faces.picture(sources["photograph"])
    boxes = _coarse(image, runs) if graph == "rnet" else _fine(image, runs)
    yield {"candidates": faces.crops(image, boxes, inputs["candidates"])}


def evaluate(*, runs: Runs, reference: Runs, sources: dict[str, Path]) -> dict[str, float]:
    """`faces`, how many are found; `iou`, the overlap of the best with the best of the float chain; `score`, of the
    best; `landmark_error`, the greatest distance of its eyes, nose and mouth to the float chain's, in shares of the
    face's width.
    """
    image = faces.picture(sources["photograph"])
    found, points = _faces(image, runs)
    truth, wanted = _faces(image, reference)
    if not len(found.boxes) or not len(truth.boxes):
        same = float(len(found.boxes) == len(truth.boxes))
        return {"faces": len(found.boxes), "iou": same, "score": 0.0, "landmark_error": 1 - same}
    width = truth.boxes[0, 2] - truth.boxes[0, 0]
    return {
        "faces": len(found.boxes),
        "iou": float(faces.iou(found.boxes[:1], truth.boxes[:1])[0, 0]),
        "score": float(found.scores[0]),
        "landmark_error": float(np.linalg.norm(points - wanted, axis=1).max() / width),
    }


def _coarse(image: faces.Image.Image, runs: Runs) -> Floats:
    _, out = runs["pnet"][0]
    found = faces.candidates(image, out["offsets"], out["probabilities"], metric.FACE["pnet"])
    return faces.squares(found.boxes)


def _fine(image: faces.Image.Image, runs: Runs) -> Floats:
    _, out = runs["rnet"][0]
    boxes = _coarse(image, runs)[: len(out["probabilities"])]
    scores, offsets = out["probabilities"][: len(boxes), 1], out["offsets"][: len(boxes)]
    taken = scores > metric.FACE["rnet"]
    return faces.squares(faces.best(faces.refined(boxes, offsets)[taken], scores[taken], 0.7).boxes)


def _faces(image: faces.Image.Image, runs: Runs) -> tuple[faces.Found, Floats]:
    """The faces, best first, and the five landmarks of the best, float32 [5, 2] in pixels."""
    _, out = runs["onet"][0]
    boxes = _fine(image, runs)[: len(out["probabilities"])]
    scores = out["probabilities"][: len(boxes), 1]
    taken = scores > metric.FACE["onet"]
    found = faces.best(faces.refined(boxes, out["offsets"][: len(boxes)])[taken], scores[taken], 0.3)
    if not len(found.boxes):
        return found, np.zeros((5, 2), np.float32)
    first = int(scores.argmax())
    corner, size = boxes[first, :2], boxes[first, 2:] - boxes[first, :2]
    return found, (corner + out["landmarks"][first].reshape(2, 5).T * size).astype(np.float32)
