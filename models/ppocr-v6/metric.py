"""What a user of the reader sees: where text is found, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]

TEXT = 0.3  # PP-OCR's threshold on the detector's probability map
_WITH_LENGTH, _MORE = 2, 128  # of protobuf: the kind of a field, and the bit that says that a number goes on
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
    text, confidence = read(result[0], sources["rec"])
    return {"text": text, "confidence": confidence}


def _iou(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """1.0 when both masks are empty: nothing was to be found and nothing was."""
    union = int((found | truth).sum())
    return int((found & truth).sum()) / union if union else 1.0


def read(probabilities: NDArray[np.float32], weights: Path) -> tuple[str, float]:
    """Greedy CTC: the best class of each step, repeats merged, blanks dropped. `probabilities` is [steps, classes].

    The characters are in the metadata of the recogniser's file, `weights`.
    """
    alphabet = ["", *characters(weights), " "]
    best = probabilities.argmax(axis=1)
    new = np.concatenate([[True], best[1:] != best[:-1]])
    kept = np.flatnonzero(new & (best != BLANK))
    text = "".join(alphabet[best[step]] for step in kept)
    return text, float(probabilities[kept].max(axis=1).mean()) if len(kept) else 0.0


@cache
def characters(weights: Path) -> list[str]:
    """The metadata `character` of an ONNX file: of the fields of ModelProto, number 14 holds pairs of key and value."""
    for field, entry in _fields(weights.read_bytes()):
        pair = dict(_fields(entry)) if field == 14 else {}
        if pair.get(1) == b"character":
            return pair[2].decode().split("\n")
    raise ValueError(f"{weights.name} has no characters in its metadata")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every field of a protobuf message that has a length; the others are passed over."""
    place = 0
    while place < len(message):
        tag, place = _number(message, place)
        size, place = _number(message, place)
        if tag & 7 == _WITH_LENGTH:
            yield tag >> 3, message[place : place + size]
            place += size


def _number(message: bytes, place: int) -> tuple[int, int]:
    """A varint, and the place after it."""
    value = shift = 0
    while True:
        byte = message[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < _MORE:
            return value, place
