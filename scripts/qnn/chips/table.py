"""The chip table: from any name of a chip to its row, and whether a chip can do a precision.

`load_table` reads the data once; everything else here is pure. Only `Soc.soc_id` is ever passed to a tool.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from qnn.chips import names
from qnn.chips.soc import ARCHES, Group, OtherChip, Soc, Status
from qnn.errors.chips import AmbiguousChip, ChipWithoutHtp, NoFp16, UnknownChip

__all__ = ["ChipTable", "Soc", "load_table", "needs_fp16", "require_precision"]

# Words that stand for many chips in a selection (qnn.chips.select).
WORDS = frozenset({"all", "flagships", "groups", "public"})
# Precisions that need floating point on the NPU.
_FLOAT_PRECISIONS = frozenset({"fp16"})
_NUMBER_SPACES = re.compile(r"^(soc_id|soc0)\s*:\s*(\S.*)$", re.IGNORECASE)
_SEE_LIST = "see `qnn-forge soc list`"


@functools.cache
def load_table() -> ChipTable:
    """The table that ships with qnn-forge. Read once a process (5 ms); the chips without an HTP only when needed."""
    from qnn.chips import load  # noqa: PLC0415 - PyYAML is not needed by those who only use the dataclasses

    data = load.read_socs()
    by_name = {soc.name: soc for soc in data.socs}
    return ChipTable(data.socs, tuple(by_name[name] for name in data.flagships), load.read_others, data.lists)


@dataclass(frozen=True)
class ChipTable:
    """All chips with an HTP, sorted by name, and ways to find one.

    `flagships` are some of them; `read_others` gives the known chips without an HTP; `lists` says which public list
    each letter code in `Soc.sources` stands for.
    """

    socs: tuple[Soc, ...]
    flagships: tuple[Soc, ...] = ()
    read_others: Callable[[], tuple[OtherChip, ...]] = tuple
    lists: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> frozenset[str]:
        """The words that stand for many chips in a selection."""
        return WORDS

    @cached_property
    def others(self) -> tuple[OtherChip, ...]:
        """Known chips for which nothing can be compiled."""
        return self.read_others()

    @cached_property
    def groups(self) -> Mapping[Group, tuple[Soc, ...]]:
        """Chips by what matters to the compiler; groups from the oldest arch on, chips in the table's order."""
        found: dict[Group, list[Soc]] = {}
        for soc in self.socs:
            found.setdefault(soc.group, []).append(soc)
        ordered = sorted(found, key=lambda group: (group[0], group[1], group[3], group[2]))
        return {group: tuple(found[group]) for group in ordered}

    def representative(self, group: Group) -> Soc:
        """One chip of a group: a flagship if there is one, else a public chip, else any; then the lowest soc_id."""
        return min(
            self.groups[group],
            key=lambda soc: (soc not in self.flagships, soc.status is not Status.PUBLIC, soc.soc_id),
        )

    def lookup(self, name: str) -> Soc:
        """The chip of a name: its own, an alias, ro.soc.model or a product name; or ``soc_id:57``, ``soc0:69``.

        Case, spaces, dashes and the brand do not matter. Raises UnknownChip (QF201) with the nearest names,
        AmbiguousChip (QF202) with the chips that share the name, ChipWithoutHtp (QF203). A bare number is an
        UnknownChip: soc_id and Linux's soc0 id are different number spaces.
        """
        prefixed = _NUMBER_SPACES.match(name.strip())
        if prefixed:
            return self._by_number(prefixed[1].lower(), prefixed[2].strip())
        if name.strip().isdecimal():
            raise self._bare_number(name.strip())
        wanted = names.key(name)
        found = self._by_name.get(wanted) or self._by_marketing.get(wanted, ())
        if len(found) == 1:
            return found[0]
        if found:
            raise AmbiguousChip(
                f"'{name}' is {len(found)} chips: {', '.join(soc.name for soc in found)}",
                remedy="use the name of the one you mean",
                details=[f"{_title(soc)}: soc_id {soc.soc_id}, {soc.group}" for soc in found],
            )
        other = self._others_by_name.get(wanted)
        if other is not None:
            raise _without_htp(other)
        raise self._unknown(name, wanted)

    def by_soc_id(self, soc_id: int) -> Soc:
        """The chip of QNN's number. Raises UnknownChip (QF201), or ChipWithoutHtp (QF203) where that is known."""
        found = self._by_soc_id.get(soc_id)
        if found is not None:
            return found
        for other in self.others:
            if other.soc_id == soc_id:
                raise _without_htp(other)
        raise UnknownChip(f"no chip has soc_id {soc_id}", remedy=_SEE_LIST)

    @cached_property
    def _by_soc_id(self) -> dict[int, Soc]:
        return {soc.soc_id: soc for soc in self.socs}

    @cached_property
    def _by_name(self) -> dict[str, tuple[Soc, ...]]:
        return _index((name, soc) for soc in self.socs for name in soc.names)

    @cached_property
    def _by_marketing(self) -> dict[str, tuple[Soc, ...]]:
        return _index((name, soc) for soc in self.socs for name in soc.marketing)

    @cached_property
    def _others_by_name(self) -> dict[str, OtherChip]:
        return {
            names.key(name): other for other in self.others for name in (*other.marketing, *other.aliases, other.name)
        }

    def _by_number(self, space: str, text: str) -> Soc:
        if not text.isdecimal():
            raise UnknownChip(f"'{text}' is not a number", remedy=f"write {space}: and the number, as {space}:57")
        number = int(text)
        if space == "soc_id":
            return self.by_soc_id(number)
        for soc in self.socs:
            if number in soc.linux_soc0:
                return soc
        raise UnknownChip(
            f"no chip is known to have the Linux soc0 id {number}",
            remedy="few of these ids are published: use the chip's name (on Android: getprop ro.soc.model)",
            details=self._number_hints(number, ("soc_id",)),
        )

    def _bare_number(self, text: str) -> UnknownChip:
        number = int(text)
        marketed = self._by_marketing.get(str(number), ())
        return UnknownChip(
            f"'{text}' is a bare number; QNN's soc_id and Linux's soc0 id are different numbers for the same chip",
            remedy=f"say which it is, soc_id:{number} or soc0:{number}, or better use the chip's name",
            details=[
                *self._number_hints(number, ("soc_id", "soc0")),
                *(f"as a product name it would be {_title(soc)}" for soc in marketed),
            ],
        )

    def _number_hints(self, number: int, spaces: Iterable[str]) -> list[str]:
        hints = []
        for space in spaces:
            if space == "soc_id":
                found: Soc | OtherChip | None = self._by_soc_id.get(number)
                found = found or next((other for other in self.others if other.soc_id == number), None)
            else:
                found = next((soc for soc in self.socs if number in soc.linux_soc0), None)
            hints.append(f"{space}:{number} is {_title(found) if found else 'not known'}")
        return hints

    def _unknown(self, name: str, wanted: str) -> UnknownChip:
        base = names.part_number_base(name)
        if base is not None:
            found = self._by_name.get(names.key(base))
            if found:
                return UnknownChip(
                    f"'{name}' is a spec-sheet part number, which no device reports",
                    remedy=f"use {found[0].name}",
                    details=[_title(soc) for soc in found],
                )
        known = {**self._others_by_name, **self._by_marketing, **self._by_name}
        near = []
        for match in names.nearest(wanted, known):
            chips = known[match]
            near += [_title(chip) for chip in (chips if isinstance(chips, tuple) else (chips,))]
        near = list(dict.fromkeys(near))
        return UnknownChip(
            f"no chip is called '{name}'",
            remedy=f"use one of the nearest names, or {_SEE_LIST}" if near else _SEE_LIST,
            details=[f"near: {title}" for title in near],
        )


def needs_fp16(precision: str) -> bool:
    """Whether a graph of this precision is computed in floating point, which not every chip can."""
    return precision in _FLOAT_PRECISIONS


def require_precision(soc: Soc, precision: str, table: ChipTable | None = None) -> None:
    """Raise NoFp16 (QF204), with the alternatives, when `precision` needs fp16 and the chip has none.

    `table` is where nearby chips with fp16 are looked for; by default the one that ships.
    """
    if not needs_fp16(precision) or soc.fp16:
        return
    near = nearest_with_fp16(soc, table or load_table())
    raise NoFp16(
        f"{_title(soc)} has no fp16, which precision {precision} needs",
        remedy="use a quantized precision on it, or exclude it from the targets of this precision",
        details=[
            "w8a16 and w8a8 run on it, from a source that already holds Q/DQ nodes",
            *(f"has fp16: {_title(other)} ({other.group})" for other in near),
        ],
    )


def nearest_with_fp16(soc: Soc, table: ChipTable, count: int = 3) -> tuple[Soc, ...]:
    """Public chips with fp16 that are most like `soc`: same product line first, then arch, VTCM and HVX threads."""

    def distance(other: Soc) -> tuple[bool, int, int, int, str]:
        return (
            _line(other) != _line(soc),
            abs(ARCHES.index(other.arch) - ARCHES.index(soc.arch)),
            abs(other.vtcm_mb - soc.vtcm_mb),
            abs(other.hvx_threads - soc.hvx_threads),
            other.name,
        )

    able = [other for other in table.socs if other.fp16 and other.status is Status.PUBLIC]
    return tuple(sorted(able, key=distance)[:count])


def _line(soc: Soc) -> str:
    """The product line is the letters a name begins with: SM phones, SC laptops, SA cars, QC and CQ devices."""
    return soc.name[:2]


def _index(pairs: Iterable[tuple[str, Soc]]) -> dict[str, tuple[Soc, ...]]:
    found: dict[str, dict[int, Soc]] = {}
    for name, soc in pairs:
        found.setdefault(names.key(name), {})[soc.soc_id] = soc
    return {name: tuple(chips.values()) for name, chips in found.items()}


def _title(chip: Soc | OtherChip) -> str:
    """``SM8650 (Snapdragon 8 Gen 3)``"""
    products = f" ({', '.join(chip.marketing)})" if chip.marketing else ""
    return f"{chip.name}{products}{', no HTP' if isinstance(chip, OtherChip) else ''}"


def _without_htp(other: OtherChip) -> ChipWithoutHtp:
    return ChipWithoutHtp(
        f"{_title(other).removesuffix(', no HTP')} has no HTP this compiler supports: {other.reason}",
        remedy="leave the chip out; context binaries need an HTP (Hexagon v68, Snapdragon 888, or newer)",
    )
