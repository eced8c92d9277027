"""What a user of a classifier sees: the class, and the five best."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = dict[str, Floats]


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float | int]:
    """`top1`, the number of the best class among ImageNet's 1000; `top5`, how many of the float model's five best are
    among the five best here; `probability` of the best class.
    """
    (scores,), (truth,) = outputs["scores"], reference["scores"]
    best = np.argsort(-scores, kind="stable")
    wanted = np.argsort(-truth, kind="stable")[:5]
    return {
        "top1": int(best[0]),
        "top5": len(set(best[:5].tolist()) & set(wanted.tolist())),
        "probability": float(_softmax(scores)[best[0]]),
    }


def _softmax(scores: Floats) -> NDArray[np.float64]:
    powers = np.exp(scores.astype(np.float64) - scores.max())
    shares: NDArray[np.float64] = powers / powers.sum()
    return shares
