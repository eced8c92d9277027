"""What a keyword spotter sees: which other moments sound alike, and in which order."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = dict[str, Floats]

MOMENTS = 24  # windows of the recording that every embedding is compared with, one about every 0.4 s


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float]:
    """`similarity`: cosine to the float model's embedding of the same window.

    `length_error`: how far the ratio of the two lengths is from 1.

    `ranking`: the moments of the recording are sorted by their similarity to this embedding; the share of all pairs
    of moments that stand in the same order as with the float model's embedding. Not the whole order: moments that
    sound equally like this one may change places within fp16's resolution.
    """
    result, truth = outputs["conv2d_19"].ravel(), reference["conv2d_19"].ravel()
    moments = _moments(inputs["input_1"].shape, tuple(sorted(sources.items())))
    return {
        "similarity": float(_unit(result) @ _unit(truth)),
        "length_error": abs(float(np.linalg.norm(result) / np.linalg.norm(truth)) - 1),
        "ranking": _same_order(moments @ result, moments @ truth),
    }


@cache
def _moments(shape: tuple[int, ...], sources: tuple[tuple[str, Path], ...]) -> Floats:
    """The float model's embeddings of windows spread over the recording, of length 1: float32 [MOMENTS, 96]."""
    files = dict(sources)
    samples = runpy.run_path(str(Path(__file__).with_name("data.py")))["samples"]
    session = ort.InferenceSession(files["weights"], providers=["CPUExecutionProvider"])
    windows = samples(graph="embedding", inputs={"input_1": shape}, sources=files, count=MOMENTS)
    return np.stack([_unit(session.run(["conv2d_19"], window)[0].ravel()) for window in windows])


def _unit(vector: Floats) -> Floats:
    unit: Floats = vector / np.linalg.norm(vector)
    return unit


def _same_order(scores: Floats, truth: Floats) -> float:
    """The share of pairs that both sequences put in the same order, 0…1."""
    first, second = np.triu_indices(len(truth), 1)
    same = np.sign(scores[first] - scores[second]) == np.sign(truth[first] - truth[second])
    return float(same.mean())
