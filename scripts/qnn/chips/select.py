"""From what a person or a model.yaml writes to the chips it means. Pure.

An expression is parts separated by commas:

    SM8650, 8 Gen 3, soc_id:57    one chip, by any name `ChipTable.lookup` knows
    SM87*, QCS8?50, SM8[5-7]50    a glob over names, aliases and device strings (case does not matter)
    all                           every chip of the table
    public                        those that a public list names
    flagships                     the best known chip of each kind and generation
    groups                        one chip for each distinct (arch, VTCM, fp16, HVX threads)
    !PART                         take away what PART means, wherever it stands
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from qnn.chips import names
from qnn.chips.soc import Soc, Status
from qnn.chips.table import ChipTable
from qnn.errors.chips import NoChipSelected

_GLOB = frozenset("*?[")


def select(expressions: str | Sequence[str], table: ChipTable) -> tuple[Soc, ...]:
    """The chips that the expressions mean together, each once, in the table's order.

    Raises NoChipSelected (QF210) for a glob that matches nothing, for a selection that only takes away, and for one
    that leaves nothing; UnknownChip (QF201), AmbiguousChip (QF202) and ChipWithoutHtp (QF203) for a name.
    """
    parts = _parts(expressions)
    wanted: set[int] = set()
    unwanted: set[int] = set()
    for part in parts:
        if part.startswith("!"):
            unwanted |= _matches(part[1:].strip(), table)
        else:
            wanted |= _matches(part, table)
    chosen = tuple(soc for soc in table.socs if soc.soc_id in wanted - unwanted)
    if not chosen:
        raise _nothing(parts, wanted)
    return chosen


def select_each(expressions: str | Sequence[str], table: ChipTable) -> tuple[tuple[Soc, ...], ...]:
    """What each part alone means, in the table's order, those that take away left out. Raises what `select` raises."""
    parts = [part for part in _parts(expressions) if not part.startswith("!")]
    return tuple(select(part, table) for part in parts)


def is_glob(part: str) -> bool:
    """Whether a part of an expression is a glob."""
    return not _GLOB.isdisjoint(part)


def _parts(expressions: str | Sequence[str]) -> tuple[str, ...]:
    listed = (expressions,) if isinstance(expressions, str) else expressions
    return tuple(part.strip() for expression in listed for part in expression.split(",") if part.strip())


def _matches(part: str, table: ChipTable) -> set[int]:
    word = part.lower()
    if word in table.words:
        return {soc.soc_id for soc in _meaning(word, table)}
    if not is_glob(part):
        return {table.lookup(part).soc_id}
    pattern = names.glob_key(part)
    found = {
        soc.soc_id for soc in table.socs if any(fnmatch.fnmatchcase(names.key(name), pattern) for name in soc.names)
    }
    if not found:
        raise _no_match(part, pattern, table)
    return found


def _meaning(word: str, table: ChipTable) -> tuple[Soc, ...]:
    match word:
        case "public":
            return tuple(soc for soc in table.socs if soc.status is Status.PUBLIC)
        case "flagships":
            return table.flagships
        case "groups":
            return tuple(table.representative(group) for group in table.groups)
        case _:
            return table.socs


def _no_match(part: str, pattern: str, table: ChipTable) -> NoChipSelected:
    without = [
        other.name
        for other in table.others
        if any(fnmatch.fnmatchcase(names.key(name), pattern) for name in (other.name, *other.aliases))
    ]
    return NoChipSelected(
        f"'{part}' matches no chip" + (" with an HTP" if without else ""),
        remedy="correct the glob; `qnn-forge soc list` shows all names",
        details=[f"matches only chips without an HTP: {', '.join(without)}"] if without else (),
    )


def _nothing(parts: tuple[str, ...], wanted: set[int]) -> NoChipSelected:
    written = ",".join(parts)
    if not parts:
        return NoChipSelected("the selection of chips is empty", remedy="name chips, a glob, or `public`")
    if not wanted:
        return NoChipSelected(
            f"'{written}' only takes chips away", remedy=f"begin with what to include, as `public,{written}`"
        )
    return NoChipSelected(f"'{written}' leaves no chip", remedy="take away less than is included")
