"""Pieces of Markdown put together up to a size, never one that is cut. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

# How much of a limit a text takes.
Measure = Callable[[str], int]


def utf16(text: str) -> int:
    """Length as GitHub may count it for a comment: UTF-16 code units, never fewer than characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8(text: str) -> int:
    """Bytes, as GitHub counts a step summary."""
    return len(text) if text.isascii() else len(text.encode())


def fill(pieces: Iterable[str], budget: int, measure: Measure) -> tuple[str, ...]:
    """As many of the first pieces as fit, each with one line break. No more pieces are asked for than that and one."""
    kept: list[str] = []
    for piece in pieces:
        budget -= measure(piece) + 1
        if budget < 0:
            break
        kept.append(piece)
    return tuple(kept)


def table(head: str, rows: Sequence[str], more: str, budget: int, measure: Measure) -> str:
    """A table of the first rows that fit, and below it how many of `more` did not; empty without rows."""
    if not rows:
        return ""
    kept = fill(rows, budget, measure)
    lines = [head, *kept] if kept else []
    left = len(rows) - len(kept)
    return "\n".join([*lines, *(["", f"{left:,} more {more}."] if left else [])])
