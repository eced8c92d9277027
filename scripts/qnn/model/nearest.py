"""The word that was probably meant."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from itertools import islice

# Looked through; a hostile file could otherwise have tens of thousands of names compared with each other.
_MOST_CANDIDATES = 200


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, or None when none is."""
    return _nearest(word, tuple(islice(known, _MOST_CANDIDATES)))


def suggest(word: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy for an unknown word: the nearest known one, or else `otherwise`."""
    found = nearest(word, known)
    return f'did you mean "{found}"?' if found is not None else otherwise


@functools.lru_cache(maxsize=1024)
def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    import difflib  # noqa: PLC0415 - only a file with a fault needs it

    found = difflib.get_close_matches(word, known, 1)
    return found[0] if found else None
