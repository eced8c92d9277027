"""What a user of the reader sees: where text is found, and what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]

TEXT = 0.3  # PP-OCR's threshold on the detector's probability map
BLANK = 0  # the CTC class that separates equal neighbours; characters follow from 1, a space comes last


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float | str]:
    """``det``: `iou`, intersection over union of the text masks of this result and the float model's.

    ``rec``: `text`, the line as PP-OCR reads it, and `confidence`, the mean probability of its characters.
    """
    (result,) = outputs.values()
    if graph == "det":
        (truth,) = reference.values()
        return {"iou": _iou(result > TEXT, truth > TEXT)}
    text, confidence = read(result[0], sources["characters"])
    return {"text": text, "confidence": confidence}


def _iou(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """1.0 when both masks are empty: nothing was to be found and nothing was."""
    union = int((found | truth).sum())
    return int((found & truth).sum()) / union if union else 1.0


def read(probabilities: NDArray[np.float32], characters: Path) -> tuple[str, float]:
    """Greedy CTC: the best class of each step, repeats merged, blanks dropped. `probabilities` is [steps, classes]."""
    alphabet = ["", *characters.read_text(encoding="utf-8").removesuffix("\n").split("\n"), " "]
    best = probabilities.argmax(axis=1)
    new = np.concatenate([[True], best[1:] != best[:-1]])
    kept = np.flatnonzero(new & (best != BLANK))
    text = "".join(alphabet[best[step]] for step in kept)
    return text, float(probabilities[kept].max(axis=1).mean()) if len(kept) else 0.0
