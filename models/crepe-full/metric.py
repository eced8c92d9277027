"""What a user of the tracker sees: the pitch of each frame, and whether there is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = dict[str, Floats]

CENTS = 20.0  # width of a pitch bin
AROUND = 4  # bins on each side of the best that are averaged, as CREPE does
VOICED = 0.5  # a frame whose best bin is below this has no pitch to speak of


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float]:
    """`voiced_share`, frames with a pitch; `same_bin`, of the frames that have one on float, how many have the same
    best bin; `cents`, the greatest difference of their pitches (a semitone is 100).
    """
    found, truth = outputs["activation"], reference["activation"]
    voiced = truth.max(axis=1) > VOICED
    same = found[voiced].argmax(axis=1) == truth[voiced].argmax(axis=1)
    errors = np.abs(_pitch(found[voiced]) - _pitch(truth[voiced]))
    return {
        "voiced_share": float((found.max(axis=1) > VOICED).mean()),
        "same_bin": float(same.mean()) if len(same) else 1.0,
        "cents": float(errors.max()) if len(errors) else 0.0,
    }


def _pitch(activation: Floats) -> NDArray[np.float64]:
    """Cents above the lowest bin: the mean of the bins around the best, weighted by their activation."""
    bins = np.arange(activation.shape[1])
    near = np.abs(bins - activation.argmax(axis=1)[:, None]) <= AROUND
    weights = np.where(near, activation, 0).astype(np.float64)
    pitch: NDArray[np.float64] = CENTS * (weights * bins).sum(axis=1) / weights.sum(axis=1)
    return pitch
