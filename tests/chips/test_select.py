"""From expressions to chips."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.chips.select import select
from qnn.chips.soc import Soc, Status
from qnn.chips.table import load_table
from qnn.errors.chips import AmbiguousChip, ChipWithoutHtp, NoChipSelected, UnknownChip

TABLE = load_table()

names = st.sampled_from([soc.name for soc in TABLE.socs])
prefixes = names.flatmap(lambda name: st.integers(1, len(name)).map(lambda length: name[:length] + "*"))
words = st.sampled_from(sorted(TABLE.words))
parts = st.one_of(names, prefixes, words)


def chosen(expression: str) -> list[str]:
    return [soc.name for soc in select(expression, TABLE)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("SM8650", ["SM8650"]),
        ("SM87*", ["SM8735", "SM8750"]),
        ("sm87*", ["SM8735", "SM8750"]),
        ("SM8[5-7]50", ["SM8550", "SM8650", "SM8750"]),
        ("SM8?50", ["SM8350", "SM8450", "SM8550", "SM8650", "SM8750", "SM8850", "SM8950"]),
        ("QCS9*", ["QCS9100"]),
        ("QCM64*", ["QCS6490"]),  # through an alias
        ("*50Q", ["SM8650"]),  # through a device string
        ("SM8750,SM8650 , 8 gen 3", ["SM8650", "SM8750"]),
        ("SM87*,!SM8735", ["SM8750"]),
        ("!SM8735,SM87*", ["SM8750"]),
        ("SM87*, ! SM8735", ["SM8750"]),
        ("soc_id:57", ["SM8650"]),
        ("FLAGSHIPS,!SC*,!SM8*", ["QCS8550", "QCS9100", "SA8295", "SXR2230P"]),
    ],
)
def test_expressions(expression: str, expected: list[str]) -> None:
    assert chosen(expression) == expected


def test_a_list_and_a_comma_mean_the_same() -> None:
    assert select(["SM87*", "QCS8550,!SM8735"], TABLE) == select("SM87*,QCS8550,!SM8735", TABLE)


def test_words() -> None:
    assert select("all", TABLE) == TABLE.socs
    assert {soc.status for soc in select("public", TABLE)} == {Status.PUBLIC}
    assert {soc.status for soc in select("all,!public", TABLE)} == {Status.COMPILER_ONLY}
    assert len(select("public", TABLE)) + len(select("all,!public", TABLE)) == 67
    groups = select("groups", TABLE)
    assert len(groups) == 22
    assert len({soc.group for soc in groups}) == 22


@given(st.lists(parts, min_size=1, max_size=5), st.randoms())
def test_order_repetition_and_case_do_not_matter(expression: list[str], dice: random.Random) -> None:
    first = select(expression, TABLE)
    shuffled = [part.lower() if index % 2 else part for index, part in enumerate([*expression, expression[0]])]
    dice.shuffle(shuffled)
    assert select(shuffled, TABLE) == first
    assert list(first) == sorted(first, key=lambda soc: soc.name)


@given(st.lists(parts, min_size=1, max_size=4), st.lists(parts, max_size=3))
def test_a_selection_is_the_union_less_what_is_taken_away(included: list[str], excluded: list[str]) -> None:
    def union(listed: list[str]) -> set[Soc]:
        return {soc for part in listed for soc in select(part, TABLE)}

    expression = [*included, *(f"!{part}" for part in excluded)]
    expected = union(included) - union(excluded)
    if expected:
        assert set(select(expression, TABLE)) == expected
    else:
        with pytest.raises(NoChipSelected, match="leaves no chip"):
            select(expression, TABLE)


@given(st.text(alphabet="SMQCsm0589*?[]!-, _", max_size=12))
def test_any_text_gives_chips_or_an_error_of_ours(text: str) -> None:
    try:
        chips = select(text, TABLE)
    except (NoChipSelected, UnknownChip, AmbiguousChip, ChipWithoutHtp):
        return
    assert chips


@pytest.mark.parametrize("expression", ["SM99*", "SM8650,SM99*", "public,!SM99*"])
def test_a_glob_that_matches_nothing_is_an_error(expression: str) -> None:
    with pytest.raises(NoChipSelected, match=r"'SM99\*' matches no chip$"):
        select(expression, TABLE)


def test_a_glob_over_chips_without_an_htp_says_so() -> None:
    with pytest.raises(NoChipSelected, match=r"'SM4\*' matches no chip with an HTP") as caught:
        select("SM4*", TABLE)
    assert caught.value.details[0].endswith("SM4250, SM4350, SM4375, SM4450, SM4635, SM4850, SM4875")


@pytest.mark.parametrize(
    ("expression", "message"), [("", "is empty"), (" , ", "is empty"), ("!SM8350", "only takes chips away")]
)
def test_selections_of_nothing(expression: str, message: str) -> None:
    with pytest.raises(NoChipSelected, match=message):
        select(expression, TABLE)


def test_names_in_an_expression_fail_as_names_do() -> None:
    with pytest.raises(UnknownChip, match="SM8651"):
        select("SM8650,SM8651", TABLE)
    with pytest.raises(ChipWithoutHtp, match="SM8250"):
        select("public,!SM8250", TABLE)
