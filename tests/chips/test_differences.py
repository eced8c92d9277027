"""What `soc check` makes of the compiler's answers."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from qnn.chips.differences import Difference, Kind, SweepReport, compare
from qnn.chips.probe import Answer, Refusal, Settings
from qnn.chips.soc import OtherChip, Soc
from qnn.chips.sweep import Crash, Observation
from qnn.chips.table import ChipTable, load_table
from qnn.errors.chips import ChipTableDiffers
from tests.chips.fake_compiler import BUILD_ID, REFUSAL, answer_of, recorded, with_settings

TABLE = load_table()


def check(changes: Mapping[int, Observation], table: ChipTable = TABLE) -> SweepReport:
    return compare({**recorded(), **changes}.values(), table)


def without(table: ChipTable, soc_id: int) -> ChipTable:
    return replace(table, socs=tuple(soc for soc in table.socs if soc.soc_id != soc_id))


def edited(table: ChipTable, soc_id: int, **changes: object) -> ChipTable:
    def edit(soc: Soc) -> Soc:
        return replace(soc, **changes) if soc.soc_id == soc_id else soc  # type: ignore[arg-type]

    return replace(table, socs=tuple(edit(soc) for soc in table.socs))


def test_the_table_agrees_with_what_the_compiler_was_recorded_to_say() -> None:
    report = check({})
    assert report.differences == ()
    assert report.qairt == "2.51.0"
    assert report.asked == 200
    assert report.agreeing == tuple(sorted(soc.soc_id for soc in TABLE.socs))
    assert report.later == ()
    assert report.vtcm_checked
    # 45 more ids give binaries, and none of them is taken for a new chip: v65 and v66 DSPs, generic ones, a data-centre
    # card (63) and a simulator (108).
    assert len(report.without_htp) == 45
    assert {1, 2, 21, 59, 63, 108, 118} <= set(report.without_htp)
    report.require_agreement()


@pytest.mark.parametrize(
    ("soc_id", "changes", "field", "compiler"),
    [
        (57, {"vtcm_mb": 4}, "vtcm_mb", "8"),
        (64, {"hvx_threads": 4}, "hvx_threads", "2"),
        (85, {"arch": "v79"}, "arch", "v73"),
        (68, {"fp16": True, "compiler_fp16": True}, "fp16", "no"),
        (30, {"compiler_fp16": False}, "fp16", "yes"),
        (97, {"name": "SM8840"}, "name", "SM8845"),
        (123, {"first_qairt": "2.52.0"}, "first_qairt", "2.51.0"),
    ],
)
def test_a_wrong_row_is_found(soc_id: int, changes: dict[str, object], field: str, compiler: str) -> None:
    table = edited(TABLE, soc_id, **changes)
    report = check({}, table)
    (difference,) = report.differences
    told = next(str(value) for key, value in changes.items() if key != "compiler_fp16" or len(changes) == 1)
    assert (difference.kind, difference.soc_id, difference.field) == (Kind.CHANGED, soc_id, field)
    assert difference.compiler == compiler
    assert difference.table == {"True": "yes", "False": "no"}.get(told, told)
    assert soc_id not in report.agreeing


def test_a_chip_the_table_lacks_is_new_with_its_facts() -> None:
    (difference,) = check({}, without(TABLE, 123)).differences
    assert difference == Difference(Kind.NEW, 123, "SM7950", "", "", "arch v81, vtcm_mb 4, hvx_threads 4, fp16 yes")
    assert str(difference) == "new 123 SM7950: arch v81, vtcm_mb 4, hvx_threads 4, fp16 yes"


def test_an_id_beyond_the_known_ones_is_new_only_with_an_htp() -> None:
    def accepted(soc_id: int, arch: int) -> Observation:
        answer = Answer(soc_id, arch, Settings("SM9050", 8, 8 << 20), BUILD_ID)
        return Observation(soc_id, answer, answer)

    report = check({150: accepted(150, 89), 151: accepted(151, 66), 152: accepted(152, 0)})
    assert [(item.kind, item.soc_id, item.name) for item in report.differences] == [(Kind.NEW, 150, "SM9050")]
    assert {151, 152} <= set(report.without_htp)


def test_a_refused_chip_is_missing_unless_the_compiler_is_older_than_it() -> None:
    (difference,) = check({57: Observation(57, REFUSAL)}).differences
    assert (difference.kind, difference.name) == (Kind.MISSING, "SM8650")
    later = check({123: Observation(123, REFUSAL)}, edited(TABLE, 123, first_qairt="2.52.0"))
    assert later.differences == ()
    assert later.later == (123,)


def test_a_crash_is_a_difference_whatever_the_id() -> None:
    crash = Crash("probe failed: killed by SIGABRT")
    answered = recorded()[69].quantized
    report = check({57: Observation(57, crash), 69: Observation(69, answered, crash), 140: Observation(140, crash)})
    assert [(item.kind, item.soc_id, item.compiler) for item in report.differences] == [
        (Kind.CRASHED, 57, crash.message),
        (Kind.CRASHED, 69, crash.message),
        (Kind.CRASHED, 140, crash.message),
    ]


def test_a_binary_for_another_chip_is_seen() -> None:
    observation = recorded()[57]
    other = replace(observation, quantized=replace(answer_of(observation), soc_model=0))
    (difference,) = check({57: other}).differences
    assert str(difference) == "changed 57 SM8650: soc_id is 0 by the compiler, 57 in the table"


def test_a_note_that_says_nothing_is_not_taken_for_agreement() -> None:
    report = check({57: with_settings(recorded()[57], hvx_threads=None, vtcm_bytes=None)})
    assert [(item.field, item.compiler) for item in report.differences] == [
        ("hvx_threads", "not stated"),
        ("vtcm_mb", "not stated"),
    ]


def test_a_chip_listed_without_an_htp_that_gets_one_is_seen() -> None:
    def with_arch(soc_id: int, arch: int) -> Observation:
        return replace(recorded()[soc_id], quantized=replace(answer_of(recorded()[soc_id]), dsp_arch=arch))

    report = check({59: with_arch(59, 73), 21: with_arch(21, 68)})
    assert [(item.kind, item.name, item.table, item.compiler) for item in report.differences] == [
        (Kind.CHANGED, "SM8250", "v66", "v68"),
        (Kind.CHANGED, "SM4450", "none", "v73"),
    ]


def test_a_known_id_that_was_refused_and_now_has_an_htp_is_new() -> None:
    answer = Answer(44, 68, Settings("SC7280X", 4, 2 << 20), BUILD_ID)
    (difference,) = check({44: Observation(44, answer, REFUSAL)}).differences
    assert str(difference) == "new 44 SC7280X: arch v68, vtcm_mb 2, hvx_threads 4, fp16 no"


def test_qairt_2_48_does_not_tell_vtcm_and_lacks_three_chips() -> None:
    def older(observation: Observation) -> Observation:
        if observation.soc_id in (119, 120, 123) or isinstance(observation.quantized, Refusal):
            return Observation(observation.soc_id, REFUSAL)
        answer = replace(answer_of(observation), build_id="v2.48.40.260702151143")
        return with_settings(replace(observation, quantized=answer), vtcm_bytes=4 << 20)

    report = check({soc_id: older(observation) for soc_id, observation in recorded().items()})
    assert report.qairt == "2.48.40"
    assert report.differences == ()
    assert report.later == (119, 120, 123)
    assert not report.vtcm_checked


def test_a_compiler_that_does_nothing_is_no_table_of_differences() -> None:
    broken = [Observation(57, Crash("probe failed: ImportError: libc++")), Observation(58, Crash("the same"))]
    with pytest.raises(ChipTableDiffers, match="made no binary for any chip") as caught:
        compare(broken, TABLE)
    assert caught.value.details == ("probe failed: ImportError: libc++", "the same")


def test_the_error_lists_every_difference() -> None:
    report = check({57: Observation(57, REFUSAL), 69: Observation(69, REFUSAL)})
    with pytest.raises(
        ChipTableDiffers, match=r"QAIRT 2\.51\.0 and the chip table differ \(differences: 2\)"
    ) as caught:
        report.require_agreement()
    assert caught.value.details == tuple(str(item) for item in report.differences)
    assert caught.value.exit_code == 4


def test_tables_of_tests_need_no_files() -> None:
    other = OtherChip("SM1", 1, "v65", compiles=True)
    report = compare([recorded()[1]], ChipTable((), read_others=lambda: (other,)))
    assert (report.differences, report.without_htp) == ((), (1,))
