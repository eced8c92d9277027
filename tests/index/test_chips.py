"""The alias table: what chips.json says is what the chip table says."""

from __future__ import annotations

import pytest

from qnn.chips.table import ChipTable, load_table
from qnn.errors.chips import AmbiguousChip, ChipWithoutHtp, UnknownChip
from qnn.index.chips import chip_table, chips_index, find_chip
from qnn.index.document import ChipsIndex, from_json, to_json


@pytest.fixture(scope="module")
def table() -> ChipTable:
    return chip_table(from_json(to_json(chips_index(load_table())), ChipsIndex, "chips.json"))


def test_every_name_of_every_chip_means_the_same_chip(table: ChipTable) -> None:
    count = 0
    for soc in load_table().socs:
        numbers = [f"soc_id:{soc.soc_id}", *(f"soc0:{number}" for number in soc.linux_soc0)]
        for name in (*soc.names, *soc.marketing, *numbers):
            try:
                wanted = load_table().lookup(name)
            except AmbiguousChip:
                with pytest.raises(AmbiguousChip):
                    find_chip(table, name)
                continue
            found = find_chip(table, name)
            assert (found.name, found.soc_id, found.group) == (wanted.name, wanted.soc_id, wanted.group)
            count += 1
    assert count > 200


@pytest.mark.parametrize(
    ("name", "chip"), [("SM8650P", "SM8650"), ("sm8550q", "SM8550"), ("SM8475P", "SM8475"), ("SXR2230P", "SXR2230P")]
)
def test_a_letter_at_the_end_of_ro_soc_model(table: ChipTable, name: str, chip: str) -> None:
    assert find_chip(table, name).name == chip


@pytest.mark.parametrize(
    ("name", "error"),
    [("SM9999P", UnknownChip), ("P", UnknownChip), ("SM7150", ChipWithoutHtp), ("SM7150P", ChipWithoutHtp)],
)
def test_names_that_mean_no_chip(table: ChipTable, name: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=name.removesuffix("P") or "P"):
        find_chip(table, name)


def test_a_chip_without_an_htp_keeps_its_reason(table: ChipTable) -> None:
    with pytest.raises(ChipWithoutHtp, match="v65"):
        find_chip(table, "SM7150")
