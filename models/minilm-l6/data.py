"""Sentences in pairs that mean nearly the same, as word pieces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SENTENCES = (
    "A man is playing a guitar on the street.",
    "The train to Berlin leaves at half past nine.",
    "Heat the oil and add the chopped onions.",
    "The bank raised its interest rates again this year.",
    "Someone performs music with a guitar outdoors.",
    "At 9:30 the Berlin train departs.",
    "Fry the onions in hot oil.",
    "Borrowing money has become more expensive at that bank.",
)
UNKNOWN = "[UNK]"


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yields `count` dicts: ``tokens`` int32 [n, t] and ``mask`` float32 [n, t], 1 where there is a token.

    Each holds the next n of SENTENCES, which begin anew after the last.
    """
    number, length = inputs["tokens"]
    vocabulary = {word: index for index, word in enumerate(sources["words"].read_text(encoding="utf-8").splitlines())}
    for sample in range(count):
        tokens, mask = np.zeros((number, length), np.int32), np.zeros((number, length), np.float32)
        for row in range(number):
            pieces = _pieces(SENTENCES[(sample * number + row) % len(SENTENCES)], vocabulary)[:length]
            tokens[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        yield {"tokens": tokens, "mask": mask}


def _pieces(sentence: str, vocabulary: dict[str, int]) -> list[int]:
    """A sentence as BERT takes it: [CLS], the pieces of its words in lower case without accents, [SEP]."""
    plain = unicodedata.normalize("NFD", sentence.lower())
    words = re.findall(r"\w+|[^\w\s]", "".join(letter for letter in plain if unicodedata.category(letter) != "Mn"))
    pieces = [piece for word in words for piece in _split(word, vocabulary)]
    return [vocabulary[piece] for piece in ("[CLS]", *pieces, "[SEP]")]


def _split(word: str, vocabulary: dict[str, int]) -> list[str]:
    """The longest pieces that a word is made of, from its start; all but the first are marked with ##."""
    pieces: list[str] = []
    while word:
        marked = [("##" if pieces else "") + word[:end] for end in range(len(word), 0, -1)]
        found = next((piece for piece in marked if piece in vocabulary), None)
        if found is None:
            return [UNKNOWN]
        pieces.append(found)
        word = word[len(found.removeprefix("##")) if len(pieces) > 1 else len(found) :]
    return pieces
