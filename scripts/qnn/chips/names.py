"""How names of chips are compared, and which known names are nearest to an unknown one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Words in front of a product name that people write or leave out.
_BRANDS = re.compile(r"^(?:(?:qualcomm|snapdragon|dragonwing)[\s_-]*)+(?=.)", re.IGNORECASE)
_MARKS = re.compile(r"[®™]|\((?:r|tm)\)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_-]+")
# Spec sheets write SM8750-AB, SM8750-3-AB; no device reports such a name (soc-names in the facts, Play catalogue).
_PART_NUMBER = re.compile(r"^(?P<chip>[A-Za-z]+\d+[A-Za-z]*)(?:-\d)?-A[A-Z]$", re.IGNORECASE)


def key(name: str) -> str:
    """What two spellings of one name have in common: no case, no spaces, dashes and underscores, no brand in front.

    ``Snapdragon 8+ Gen 1`` and ``8+gen1`` → ``8+gen1``; ``sm-8650`` → ``sm8650``.
    """
    bare = _MARKS.sub("", name).strip()
    return _SEPARATORS.sub("", _BRANDS.sub("", bare)).casefold()


def glob_key(pattern: str) -> str:
    """A glob in the same form; what stands in brackets keeps its dashes (``SM8[5-7]50``)."""
    return re.sub(r"(\[[^\]]*\])|[\s_-]", lambda found: found[1] or "", pattern.strip()).casefold()


def part_number_base(name: str) -> str | None:
    """The chip's name in a spec-sheet part number (``SM8750-AC`` → ``SM8750``), else None."""
    found = _PART_NUMBER.match(name.strip())
    return found["chip"] if found else None


def nearest(wanted: str, known: Iterable[str], count: int = 5) -> list[str]:
    """The keys nearest to `wanted` (a key itself): those it begins, then those that look like it; best first."""
    import difflib  # noqa: PLC0415 - only a mistyped name needs it

    known = sorted(set(known))
    begun = [name for name in known if len(wanted) >= 3 and name.startswith(wanted)]
    alike = difflib.get_close_matches(wanted, known, n=count, cutoff=0.6)
    return list(dict.fromkeys([*begun, *alike]))[:count]
