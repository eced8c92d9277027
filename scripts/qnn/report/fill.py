"""Pieces of Markdown put together up to a size, never one that is cut. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Filled:
    """The first pieces that fit, and how many did not."""

    pieces: tuple[str, ...]
    left: int


def size(text: str) -> int:
    """Length as GitHub may count it: UTF-16 code units, never fewer than characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def fill(pieces: Sequence[str], budget: int) -> Filled:
    """As many of the first pieces as fit, each with one line break, in `budget` UTF-16 units."""
    kept: list[str] = []
    for piece in pieces:
        budget -= size(piece) + 1
        if budget < 0:
            break
        kept.append(piece)
    return Filled(tuple(kept), len(pieces) - len(kept))


def table(head: str, rows: Sequence[str], budget: int, more: str) -> str:
    """A table of the first rows that fit, and below it how many of `more` did not; empty without rows."""
    if not rows:
        return ""
    filled = fill(rows, budget)
    lines = [head, *filled.pieces] if filled.pieces else []
    return "\n".join([*lines, *_rest(filled.left, more)])


def _rest(left: int, more: str) -> list[str]:
    return ["", f"{left:,} more {more}."] if left else []
