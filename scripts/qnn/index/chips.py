"""The alias table of the index: chips.json from the chip table, and a chip table from chips.json."""

from __future__ import annotations

import re

from qnn.chips.soc import OtherChip, Soc, Status
from qnn.chips.table import ChipTable
from qnn.errors.chips import UnknownChip
from qnn.index.document import SCHEMA_VERSION, ChipsIndex, IndexChip, IndexOtherChip

# ro.soc.model of some bins and of cars carries one more letter: SM8650P, SM8650Q (facts: soc-names, Play catalogue).
_SUFFIXED = re.compile(r"(?P<chip>.*[0-9])[PQ]", re.IGNORECASE)


def chips_index(table: ChipTable) -> ChipsIndex:
    """The document for a chip table, in the table's order."""
    return ChipsIndex(
        SCHEMA_VERSION,
        tuple(
            IndexChip(
                soc.name,
                soc.soc_id,
                soc.arch,
                soc.vtcm_mb,
                soc.hvx_threads,
                soc.fp16,
                soc.first_qairt,
                soc.status.value,
                aliases=soc.aliases,
                ro_soc_model=soc.device,
                marketing=soc.marketing,
                linux_soc0=soc.linux_soc0,
            )
            for soc in table.socs
        ),
        tuple(
            IndexOtherChip(other.name, other.reason, other.soc_id, other.aliases, other.marketing)
            for other in table.others
        ),
    )


def chip_table(index: ChipsIndex) -> ChipTable:
    """A chip table that knows what the document says; enough to look chips up in, not to compile for them."""
    others = tuple(
        OtherChip(chip.name, chip.soc_id, "unknown", False, chip.marketing, chip.aliases, chip.reason)
        for chip in index.without_htp
    )
    return ChipTable(tuple(_soc(chip) for chip in index.chips), read_others=lambda: others)


def find_chip(table: ChipTable, name: str) -> Soc:
    """The chip of any of its names, or of its ro.soc.model with a P or Q at the end that the table does not list.

    Raises what `ChipTable.lookup` raises: QF201, QF202, QF203.
    """
    try:
        return table.lookup(name)
    except UnknownChip as unknown:
        suffixed = _SUFFIXED.fullmatch(name.strip())
        if suffixed is None:
            raise
        try:
            return table.lookup(suffixed["chip"])
        except UnknownChip:
            raise unknown from None


def _soc(chip: IndexChip) -> Soc:
    known = {status.value for status in Status}
    return Soc(
        name=chip.name,
        soc_id=chip.soc_id,
        arch=chip.arch,
        vtcm_mb=chip.vtcm_mb,
        hvx_threads=chip.hvx_threads,
        fp16=chip.fp16,
        compiler_fp16=chip.fp16,
        first_qairt=chip.first_qairt,
        status=Status(chip.status) if chip.status in known else Status.COMPILER_ONLY,
        sources=(),
        date="",
        marketing=chip.marketing,
        device=chip.ro_soc_model,
        linux_soc0=chip.linux_soc0,
        aliases=chip.aliases,
    )
