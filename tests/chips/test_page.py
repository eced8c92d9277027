"""docs/chips.md is what the table says."""

from pathlib import Path

from qnn.chips.page import chips_page
from qnn.chips.table import load_table

PAGE = Path(__file__).parents[2] / "docs" / "chips.md"


def test_the_committed_page_is_the_generated_one() -> None:
    assert PAGE.read_text(encoding="utf-8") == chips_page(load_table()), "run: python -m qnn.chips.page > docs/chips.md"


def test_the_page_has_every_chip_and_note() -> None:
    table = load_table()
    lines = chips_page(table).splitlines()
    assert (
        "| SM8350 | Snapdragon 888, Snapdragon 888+ | 30 | v68 | 4 | 4 | no | 2.48.40 or earlier | public | SM8350P |"
    ) in lines
    assert "| v68 | 4 | 4 | no | SC8280X, SM8325, **SM8350** |" in lines
    assert sum(line.startswith("| ") for line in lines) == 67 + 22 + len(table.others) + 3 * 2
    assert sum(line.startswith("- **SM8845** (97): ") for line in lines) == 1
