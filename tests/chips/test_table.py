"""Looking a chip up: every name finds its chip, everything else is an error that helps."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.chips.soc import Soc
from qnn.chips.table import ChipTable, load_table, nearest_with_fp16, require_precision
from qnn.errors.chips import AmbiguousChip, ChipWithoutHtp, NoFp16, UnknownChip

TABLE = load_table()
NAMED = [(name, soc) for soc in TABLE.socs for name in (*soc.names, *soc.marketing) if name != "Snapdragon X Plus"]


def respell(name: str, seed: int) -> str:
    """The same name as another person may write it: other case, other separators."""
    dice = random.Random(seed)
    separators = (" ", "-", "_", "", "  ")
    return "".join(
        dice.choice(separators) if letter in " -" else dice.choice((letter.lower(), letter.upper())) for letter in name
    )


@given(st.sampled_from(NAMED), st.integers(min_value=0))
def test_every_name_finds_its_chip_however_it_is_spelt(named: tuple[str, Soc], seed: int) -> None:
    name, soc = named
    assert TABLE.lookup(respell(name, seed)) is soc


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("SM8650P", "SM8650"),
        ("SM8650Q", "SM8650"),
        ("8 gen 3", "SM8650"),
        ("Qualcomm Snapdragon® 8+ Gen 1", "SM8475"),
        ("8 gen 1", "SM8450"),
        ("8 Elite", "SM8750"),
        ("8 Elite Gen 5", "SM8850"),
        ("8 Gen 5", "SM8845"),
        ("SM8845P", "SM8845"),
        ("Snapdragon 888+", "SM8350"),
        ("QCM6490", "QCS6490"),
        ("QCS8275", "QCS8300"),
        ("QCS9075", "QCS9100"),
        ("IQ-9075", "QCS9100"),
        ("SA8650", "SA8255"),
        ("SA8775P", "SA8255"),
        ("SA7255P", "SA8620P"),
        ("SA8295P", "SA8295"),
        # the newer chip's own id, where AI Hub compiles for a twin's (69, 60, 60, 86, 36)
        ("QCS8750", "CQ8750S"),
        ("IQ-X5121", "IQX5121"),
        ("X Plus 8-core", "SC8340XP"),
        ("QCS7790", "CQ7790M"),
        ("XR2 Gen 2", "SXR2230P"),
        ("soc_id:57", "SM8650"),
        ("SOC_ID: 57", "SM8650"),
        ("soc0:69", "SM8750"),
        ("soc0:618", "SM8750"),
        ("soc0:603", "QCS8550"),
    ],
)
def test_names_of_all_kinds(name: str, chip: str) -> None:
    assert TABLE.lookup(name).name == chip


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        ("57", "soc_id:57 is SM8650 (Snapdragon 8 Gen 3)"),
        (" 69 ", "soc0:69 is SM8750 (Snapdragon 8 Elite)"),
        ("1", "soc_id:1 is SDM845 (Snapdragon 845), no HTP"),
        ("888", "as a product name it would be SM8350 (Snapdragon 888, Snapdragon 888+)"),
    ],
)
def test_a_bare_number_is_refused_and_both_readings_are_offered(number: str, hint: str) -> None:
    with pytest.raises(UnknownChip, match="different numbers for the same chip") as caught:
        TABLE.lookup(number)
    assert hint in caught.value.details
    assert f"soc_id:{number.strip()} or soc0:{number.strip()}" in caught.value.remedy


def test_a_linux_id_is_not_taken_for_a_soc_id() -> None:
    with pytest.raises(UnknownChip, match="Linux soc0 id 57") as caught:
        TABLE.lookup("soc0:57")
    assert caught.value.details == ("soc_id:57 is SM8650 (Snapdragon 8 Gen 3)",)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("SM8655", "near: SM8650 (Snapdragon 8 Gen 3)"),
        ("SM86", "near: SM8635 (Snapdragon 8s Gen 3)"),
        ("snapdragon 8 elit", "near: SM8750 (Snapdragon 8 Elite)"),
        ("QSC8550", "near: QCS8550 (Dragonwing QCS8550, Dragonwing QCM8550)"),
        ("SM825", "near: SM8250 (Robotics RB5, Snapdragon 865, Snapdragon 865+), no HTP"),
    ],
)
def test_an_unknown_name_lists_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(UnknownChip, match=f"no chip is called '{wrong}'") as caught:
        TABLE.lookup(wrong)
    assert near in caught.value.details
    assert len(set(caught.value.details)) == len(caught.value.details) <= 6


@given(st.text(max_size=30))
def test_any_text_gives_a_chip_or_an_error_of_ours(text: str) -> None:
    try:
        soc = TABLE.lookup(text)
    except (UnknownChip, AmbiguousChip, ChipWithoutHtp):
        return
    assert soc in TABLE.socs


@pytest.mark.parametrize("part", ["SM8750-AC", "sm8750-ab", "SM8750-3-AB"])
def test_a_part_number_is_no_name_but_says_which_chip_it_is(part: str) -> None:
    with pytest.raises(UnknownChip, match="spec-sheet part number") as caught:
        TABLE.lookup(part)
    assert caught.value.remedy == "use SM8750"


def test_a_product_name_of_two_chips_lists_both() -> None:
    with pytest.raises(AmbiguousChip, match="2 chips: SC8340XP, SC8380XP") as caught:
        TABLE.lookup("X Plus")
    assert [detail.split(":")[1].split(",")[0].strip() for detail in caught.value.details] == [
        "soc_id 120",
        "soc_id 60",
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SDM845", "Hexagon DSP is v65"),
        ("snapdragon 865", "Hexagon DSP is v66"),
        ("QRB5165", "Hexagon DSP is v66"),
        ("SM4450", "no Hexagon Tensor Processor"),
        ("soc_id:1", "Hexagon DSP is v65"),
        ("AIC100", "data-centre card"),
        ("SM7525", "no public source states its soc_id"),
        ("SC7280X", "the compiler refuses that id"),
    ],
)
def test_a_chip_without_an_htp_is_known_as_such(name: str, reason: str) -> None:
    with pytest.raises(ChipWithoutHtp, match="has no HTP this compiler supports") as caught:
        TABLE.lookup(name)
    assert reason in caught.value.message


def test_by_soc_id() -> None:
    assert TABLE.by_soc_id(57).name == "SM8650"
    with pytest.raises(ChipWithoutHtp, match="SDM845"):
        TABLE.by_soc_id(1)
    with pytest.raises(UnknownChip, match="no chip has soc_id 0"):
        TABLE.by_soc_id(0)


def test_groups_hold_every_chip_once_and_are_led_by_a_known_chip() -> None:
    members = [soc for chips in TABLE.groups.values() for soc in chips]
    assert sorted(soc.soc_id for soc in members) == sorted(soc.soc_id for soc in TABLE.socs)
    # 23 by what the compiler takes; SM8350 joins SM8325 because its fp16 is not believed.
    assert len(TABLE.groups) == 22
    assert len({(soc.arch, soc.vtcm_mb, soc.compiler_fp16, soc.hvx_threads) for soc in TABLE.socs}) == 23
    assert TABLE.lookup("SM8850").group != TABLE.lookup("SM8845").group
    assert TABLE.representative(TABLE.lookup("SC8440XP").group).name == "SM8850"  # the flagship with the lowest id
    assert TABLE.representative(TABLE.lookup("SM8975L").group).name == "SM8950"


def test_fp16_is_refused_where_the_chip_has_none_with_alternatives() -> None:
    sm8635 = TABLE.lookup("SM8635")
    with pytest.raises(
        NoFp16, match=r"SM8635 \(Snapdragon 8s Gen 3\) has no fp16, which precision fp16 needs"
    ) as caught:
        require_precision(sm8635, "fp16")
    assert caught.value.details[0] == "w8a16 and w8a8 run on it, from a source that already holds Q/DQ nodes"
    assert caught.value.details[1].startswith("has fp16: SM8550 (Snapdragon 8 Gen 2)")
    for precision in ("w8a16", "w8a8", "w4a16", "mixed"):
        require_precision(sm8635, precision)
    require_precision(TABLE.lookup("SM8650"), "fp16")


def test_the_compilers_leniency_does_not_make_sm8350_an_fp16_chip() -> None:
    with pytest.raises(NoFp16):
        require_precision(TABLE.lookup("SM8350"), "fp16")


@pytest.mark.parametrize("soc", TABLE.socs, ids=lambda soc: soc.name)
def test_nearest_chips_with_fp16_are_public_and_able(soc: Soc) -> None:
    near = nearest_with_fp16(soc, TABLE)
    assert len(near) == 3
    assert all(other.fp16 and other.status == "public" for other in near)


def test_chips_without_an_htp_are_read_only_when_needed() -> None:
    def fail() -> tuple[()]:
        raise AssertionError("read too early")

    table = ChipTable(TABLE.socs, TABLE.flagships, fail)
    assert table.lookup("8 gen 3").soc_id == 57
    with pytest.raises(AssertionError, match="read too early"):
        table.lookup("SM8250")
