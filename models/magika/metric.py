"""What a user of magika sees: the kind of file, and how sure it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float | str]:
    """`kind`, the label of the highest score, and `score`, its probability."""
    (scores,) = outputs["target_label"]
    labels = json.loads(sources["labels"].read_text(encoding="utf-8"))["target_labels_space"]
    best = int(scores.argmax())
    return {"kind": labels[best], "score": float(scores[best])}
