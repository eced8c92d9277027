"""The whole 1.6 s of a stretch: four turns of the graph, each from the states that the one before left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import data
import numpy as np
from data import Floats

Run = tuple[dict[str, Floats], dict[str, Floats]]


def feed(
    *, graph: str, turn: int, inputs: dict[str, tuple[int, ...]], runs: dict[str, list[Run]], sources: dict[str, Path]
) -> Iterator[dict[str, Floats]]:
    """The next quarter of every stretch, with its own states."""
    mels = data.spectrogram(sources["recording"])
    count = len(runs[graph]) // turn
    for (_, before), start in zip(runs[graph][-count:], data.starts(len(mels), count), strict=True):
        states = {"hidden": before["hidden_out"], "cell": before["cell_out"]}
        yield {"mels": data.quarter(mels, start, turn, inputs["mels"]), **states}


def evaluate(
    *, runs: dict[str, list[Run]], reference: dict[str, list[Run]], sources: dict[str, Path]
) -> dict[str, float]:
    """`similarity`: the least cosine of a stretch's embedding to the float chain's.

    `likeness_error`: how far the likeness of the first and the last stretch, which one voice speaks, is from the float
    chain's. A verifier compares such a likeness with a threshold.
    """
    found, truth = (_voices(side["encoder"]) for side in (runs, reference))
    return {
        "similarity": float((found * truth).sum(axis=1).min()),
        "likeness_error": abs(float(found[0] @ found[-1]) - float(truth[0] @ truth[-1])),
    }


def _voices(runs: list[Run]) -> Floats:
    """The embeddings of the last turn, float32 [stretches, 256]."""
    starts = sum(1 for given, _ in runs if not given["hidden"].any())
    return np.concatenate([out["voice"] for _, out in runs[-starts:]])
