"""Prompts as the model reads them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

PROMPTS = {
    32: "The capital of France is Paris. The capital of Italy is",
    128: "Water boils at 100 degrees Celsius at sea level. On a high mountain the air is thinner, so it boils at a "
    "lower temperature. That is why cooking takes longer there: the water in the pot is not as hot as it is in the "
    "valley. A pressure cooker helps, because it keeps the steam inside and lets the temperature rise. The Sun rises "
    "in the east and sets in the",
}
# A space and letters, a space and one digit, or a space and other signs.
_WORDS = re.compile(r" ?[A-Za-z]+| ?\d| ?[^\sA-Za-z\d]+|\s+")


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yields one dict: ``tokens`` int32 [1, t], the prompt of that bucket and then padding, ``mask`` float32 [1, t].

    There is a prompt for each length of PROMPTS and no second one.
    """
    shape = inputs["tokens"]
    pieces = tokens(PROMPTS[shape[1]], gguf.read(sources["weights"]))
    row, mask = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    row[0, : len(pieces)] = pieces
    mask[0, : len(pieces)] = 1
    yield {"tokens": row, "mask": mask}


def tokens(text: str, file: gguf.Gguf) -> list[int]:
    """The numbers of a text's pieces, by the merges of the GGUF file. For plain English: letters, digits, signs."""
    numbers = {piece: number for number, piece in enumerate(file.facts["tokenizer.ggml.tokens"])}
    ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(file.facts["tokenizer.ggml.merges"])}
    words = (word.replace(" ", "Ġ") for word in _WORDS.findall(text))
    return [numbers[piece] for word in words for piece in _merged(list(word), ranks)]


def _merged(pieces: list[str], ranks: dict[tuple[str, ...], int]) -> list[str]:
    """Neighbours are joined, the pair of the lowest rank first, until no pair has one."""
    while len(pieces) > 1:
        pairs = list(itertools.pairwise(pieces))
        best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        at = pairs.index(best)
        pieces[at : at + 2] = ["".join(best)]
    return pieces
