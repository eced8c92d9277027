"""What a reader of the text sees: which word comes next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray


def evaluate(
    *,
    graph: str,
    inputs: dict[str, NDArray[Any]],
    outputs: dict[str, NDArray[np.float32]],
    reference: dict[str, NDArray[np.float32]],
    sources: dict[str, Path],
) -> dict[str, float | str]:
    """`next`: the piece of text that follows the prompt. `same`: the share of the prompt's tokens after which the same
    next one is best as with the float model. `loss`: the mean of -log of the probability of the prompt's own tokens.
    """
    real = int(inputs["mask"].sum())
    scores, truth = outputs["scores"][0, :real], reference["scores"][0, :real]
    best = scores.argmax(axis=1)
    words: list[str] = gguf.read(sources["weights"]).facts["tokenizer.ggml.tokens"]
    own = inputs["tokens"][0, 1:real]
    return {
        "next": words[best[-1]].replace("Ġ", " "),
        "same": float((best == truth.argmax(axis=1)).mean()),
        "loss": float(-_log_shares(scores[:-1])[np.arange(real - 1), own].mean()),
    }


def _log_shares(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)
    shares: NDArray[np.float64] = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    return shares
