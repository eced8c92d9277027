"""What a search sees: which sentence is nearest to each, and in which order the others follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def evaluate(
    *,
    graph: str,
    inputs: dict[str, NDArray[Any]],
    outputs: dict[str, Floats],
    reference: dict[str, Floats],
    sources: dict[str, Path],
) -> dict[str, float | str]:
    """`similarity`: the least cosine of a sentence to the float model's of the same sentence.

    `nearest`: for each sentence the number of the one most like it. `ranking`: the share of all pairs of other
    sentences that stand in the same order as with the float model. Of one sentence there is nothing to rank: 1.0.
    """
    found, truth = outputs["sentences"], reference["sentences"]
    return {
        "similarity": float((_unit(found) * _unit(truth)).sum(axis=1).min()),
        "nearest": " ".join(str(row.argmax()) for row in _others(found)) if len(found) > 1 else "",
        "ranking": _same_order(_others(found), _others(truth)),
    }


def _others(sentences: Floats) -> Floats:
    """The cosine of every sentence to every other; to itself -1."""
    unit = _unit(sentences)
    similarities: Floats = unit @ unit.T
    np.fill_diagonal(similarities, -1)
    return similarities


def _same_order(found: Floats, truth: Floats) -> float:
    first, second = np.triu_indices(len(truth), 1)
    signs = [np.sign(rows[:, first] - rows[:, second]) for rows in (found, truth)]
    return float((signs[0] == signs[1]).mean()) if len(first) else 1.0


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
