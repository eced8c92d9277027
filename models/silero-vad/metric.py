"""What a user of the detector sees: is this speech, and how sure is it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float | bool]:
    """The decision at silero's default threshold, and the distance from the float model's probability (0…1)."""
    probability = float(outputs["output"][0, 0])
    return {"speech": probability > 0.5, "probability_error": abs(probability - float(reference["output"][0, 0]))}
