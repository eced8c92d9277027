"""What the next step sees of each network: which places it takes for a face, and how it moves their boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from faces import Floats

Tensors = dict[str, Floats]

FACE = {"pnet": 0.6, "rnet": 0.7, "onet": 0.7}  # MTCNN's thresholds


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float]:
    """`iou`: places that are faces here and on float, over those that are faces on either. `score_error`: the greatest
    difference of a probability. `offset_error`: of an offset of those that are faces on float, in shares of the box.
    """
    found, truth = (result["probabilities"][:, 1] for result in (outputs, reference))
    taken, wanted = found > FACE[graph], truth > FACE[graph]
    either = int((taken | wanted).sum())
    moves = np.abs(outputs["offsets"] - reference["offsets"]).max(axis=1)
    return {
        "iou": int((taken & wanted).sum()) / either if either else 1.0,
        "score_error": float(np.abs(found - truth).max()),
        "offset_error": float(moves[wanted].max(initial=0)),
    }
