"""qnn-forge soc on the command line."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from qnn.chips import sweep
from qnn.chips.table import ChipTable, load_table
from qnn.cli.soc import soc
from qnn.errors.chips import ChipTableDiffers, UnknownChip
from tests.chips.fake_compiler import REFUSAL, recorded


def run(*arguments: str) -> Result:
    return CliRunner().invoke(soc, arguments)


def names(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [row["name"] for row in json.loads(result.stdout)]


def test_list_prints_one_line_a_chip() -> None:
    result = run("list")
    lines = result.stdout.splitlines()
    assert len(lines) == 68
    assert lines[0].split()[:3] == ["name", "soc_id", "arch"]
    (line,) = [line for line in lines if line.startswith("SM8650 ")]
    assert line.split()[:7] == ["SM8650", "57", "v75", "8", "4", "yes", "public"]
    assert "Snapdragon 8 Gen 3" in line
    assert line.rstrip().endswith("SM8650P, SM8650Q")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--arch", "v69"], ["SM7450", "SM7475", "SM8450", "SM8475", "SXR2230P"]),
        (["--arch", "69", "--no-fp16"], ["SM7475"]),
        (["--arch", "V68", "--arch", "69", "--fp16"], ["SA8295", "SA8540", "SM7450", "SM8450", "SM8475", "SXR2230P"]),
        (["SM89*", "--status", "compiler-only"], ["SM8975L"]),
        (["SM87*", "QCS8550"], ["QCS8550", "SM8735", "SM8750"]),
    ],
)
def test_list_filters(arguments: list[str], expected: list[str]) -> None:
    assert names(run("list", "--json", *arguments)) == expected


def test_list_knows_arches() -> None:
    result = run("list", "--arch", "v70")
    assert result.exit_code == 2
    assert "v70 is none of v68, v69" in result.stderr


def test_show_prints_all_facts() -> None:
    result = run("show", "888")
    assert isinstance(result.exception, UnknownChip)
    lines = run("show", "snapdragon 888").stdout.splitlines()
    assert lines[0] == "SM8350"
    assert "  fp16            no (though the compiler says yes)" in lines
    assert "  known to QAIRT  2.48.40 or earlier" in lines
    assert "  same group      SC8280X, SM8325" in lines
    assert any(line.startswith("  source of fp16  LiteRT's older table") for line in lines)


def test_show_as_json() -> None:
    shown = json.loads(run("show", "8 elite", "--json").stdout)
    assert (shown["name"], shown["soc_id"], shown["linux_soc0"]) == ("SM8750", 69, [69, 618])
    assert shown["device"] == ["SM8750", "SM8750P"]
    assert shown["same_group"] == ["CQ8725S", "CQ8750S", "SXR2330P"]
    assert shown["sources"]["fp16"] == ["LO", "AIH", "OR"]


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[int, sweep.Observation]]:
    """`soc check` against the recording; change what is returned to change what the compiler says."""
    said = recorded()

    def answer(ids: tuple[int, ...], on_answer: Callable[[sweep.Observation], None]) -> tuple[sweep.Observation, ...]:
        for soc_id in ids:
            on_answer(said[soc_id])
        return tuple(said[soc_id] for soc_id in ids)

    monkeypatch.setattr(sweep, "ask_compiler", answer)
    return lambda: said


def test_check_agrees(recording: Callable[[], dict[int, sweep.Observation]]) -> None:
    result = run("check")
    assert result.exit_code == 0
    assert result.stdout == (
        "QAIRT 2.51.0: 200 ids asked, 67 chips agree with the table, 45 ids without an HTP, differences: 0\n"
    )
    assert result.stderr == ""


def test_check_prints_differences_and_fails(recording: Callable[[], dict[int, sweep.Observation]]) -> None:
    recording()[57] = sweep.Observation(57, REFUSAL)
    result = run("check")
    assert isinstance(result.exception, ChipTableDiffers)
    assert result.exception.details == (f"missing 57 SM8650: {REFUSAL.message}",)
    assert result.stdout.endswith("66 chips agree with the table, 45 ids without an HTP, differences: 1\n")


def test_check_as_json_is_one_document_also_when_it_fails(
    recording: Callable[[], dict[int, sweep.Observation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = load_table()
    short: ChipTable = replace(table, socs=tuple(chip for chip in table.socs if chip.soc_id != 123))
    monkeypatch.setattr("qnn.chips.table.load_table", lambda: short)
    result = run("check", "--json")
    assert isinstance(result.exception, ChipTableDiffers)
    document = json.loads(result.stdout)
    assert not document["agree"]
    assert document["differences"] == [
        {
            "kind": "new",
            "soc_id": 123,
            "name": "SM7950",
            "field": "",
            "table": "",
            "compiler": "arch v81, vtcm_mb 4, hvx_threads 4, fp16 yes",
        }
    ]
