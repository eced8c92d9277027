"""What a user of the reader sees: the text."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]

CHARACTERS = "CHARSET_BETA"  # the list in ddddocr's charsets.py that belongs to common.onnx


def evaluate(
    *, graph: str, inputs: Tensors, outputs: Tensors, reference: Tensors, sources: dict[str, Path]
) -> dict[str, float | str]:
    """`text`, the word as ddddocr reads it, and `margin`, by how much the best class of a step leads the second.

    The margin is the least over all steps, in the units of the network's scores.
    """
    (scores,) = outputs.values()
    steps = scores[:, 0]  # [steps, classes]
    first_two = np.sort(steps, axis=1)[:, -2:]
    return {"text": _read(steps, _alphabet(sources["characters"])), "margin": float(np.ptp(first_two, axis=1).min())}


def _read(steps: NDArray[np.float32], alphabet: list[str]) -> str:
    """Greedy CTC: the best class of each step, repeats merged; the blank is class 0, an empty string."""
    best = steps.argmax(axis=1)
    new = np.concatenate([[True], best[1:] != best[:-1]])
    return "".join(alphabet[index] for index in best[new])


def _alphabet(charsets: Path) -> list[str]:
    """The list out of the Python file, which is read and never run."""
    for statement in ast.parse(charsets.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == CHARACTERS:
            alphabet: list[str] = ast.literal_eval(statement.value)
            return alphabet
    raise ValueError(f"{charsets.name} has no {CHARACTERS}")
