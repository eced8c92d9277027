"""The rules socs.yaml and without_htp.yaml keep."""

import datetime
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from qnn.chips import names
from qnn.chips.load import OTHERS_FILE, SOCS_FILE, read_others, read_socs
from qnn.chips.soc import ARCHES, Status, qairt_key

DATA = read_socs()
OTHERS = read_others()
REQUIRED = {
    "name", "soc_id", "arch", "vtcm_mb", "hvx_threads", "fp16", "first_qairt", "status", "sources", "date",
}  # fmt: skip
OPTIONAL = {"marketing", "device", "linux_soc0", "aliases", "compiler_fp16", "note"}


def test_there_are_the_67_chips_with_an_htp() -> None:
    assert len(DATA.socs) == 67
    ids = {soc.soc_id for soc in DATA.socs}
    assert len(ids) == 67
    # What the compiler takes besides: a data-centre card and a simulator's name (108) are not chips with an HTP.
    assert ids.isdisjoint({63, 108})
    assert {57, 30, 123} <= ids


def test_rows_have_known_keys_of_the_right_type() -> None:
    document = yaml.safe_load(SOCS_FILE.read_text(encoding="utf-8"))
    assert list(document) == ["lists", "flagships", "socs"]
    for row in document["socs"]:
        assert row.keys() >= REQUIRED, row["name"]
        assert row.keys() <= REQUIRED | OPTIONAL, row["name"]
        assert all(type(row[key]) is int for key in ("soc_id", "vtcm_mb", "hvx_threads")), row["name"]
        assert all(type(row[key]) is bool for key in ("fp16", "compiler_fp16") if key in row), row["name"]
        for key in ("marketing", "device", "linux_soc0", "aliases"):
            assert key not in row or (isinstance(row[key], list) and row[key]), row["name"]


def test_names_are_sorted_and_every_name_means_one_chip() -> None:
    assert all(a.name < b.name for a, b in pairwise(DATA.socs))
    assert all(a.name < b.name for a, b in pairwise(OTHERS))
    owners: dict[str, str] = {}
    for chip, spellings in (
        *((soc.name, soc.names) for soc in DATA.socs),
        *((other.name, (other.name, *other.aliases)) for other in OTHERS),
    ):
        for name in spellings:
            assert owners.setdefault(names.key(name), chip) == chip, (
                f"{name} means {chip} and {owners[names.key(name)]}"
            )


def test_only_one_product_name_is_shared_and_none_hides_behind_a_chips_name() -> None:
    own = {names.key(name): soc.name for soc in DATA.socs for name in soc.names}
    products: dict[str, set[str]] = {}
    for soc in DATA.socs:
        for product in soc.marketing:
            products.setdefault(names.key(product), set()).add(soc.name)
            assert own.get(names.key(product), soc.name) == soc.name
    assert {key: chips for key, chips in products.items() if len(chips) > 1} == {"xplus": {"SC8340XP", "SC8380XP"}}
    others = {names.key(product) for other in OTHERS for product in other.marketing}
    assert others.isdisjoint(products.keys() | own.keys())


def test_ids_are_unique_over_both_files() -> None:
    ids = [soc.soc_id for soc in DATA.socs] + [other.soc_id for other in OTHERS if other.soc_id is not None]
    assert len(ids) == len(set(ids))
    soc0 = [number for soc in DATA.socs for number in soc.linux_soc0]
    assert sorted(soc0) == [69, 603, 618]


def test_facts_are_in_range_and_backed_by_named_lists() -> None:
    codes = {code for code, _ in DATA.lists}
    used = set()
    for soc in DATA.socs:
        assert soc.arch in ARCHES
        assert soc.vtcm_mb in (2, 4, 8, 12, 16)
        assert soc.hvx_threads in (2, 4, 6, 8)
        assert [evidence.fact for evidence in soc.sources] == ["id", "arch", "vtcm", "fp16"], soc.name
        assert all(evidence.lists for evidence in soc.sources), soc.name
        lists = {code for evidence in soc.sources for code in evidence.lists}
        assert lists <= codes, soc.name
        assert (soc.status is Status.COMPILER_ONLY) == (lists == {"OR"}), soc.name
        used |= lists
        assert re.fullmatch(r"2\.(4[89]|5\d)\.\d+", soc.first_qairt)
        assert qairt_key(soc.first_qairt) <= (2, 51, 0)
        assert datetime.date.fromisoformat(soc.date) >= datetime.date(2026, 11, 30)
    assert used == codes


def test_where_the_compiler_is_more_lenient_than_the_chip_a_note_says_why() -> None:
    lenient = [soc for soc in DATA.socs if soc.fp16 is not soc.compiler_fp16]
    assert [(soc.name, soc.fp16, soc.compiler_fp16) for soc in lenient] == [("SM8350", False, True)]
    assert "fp16" in lenient[0].note


def test_device_strings_are_those_that_devices_report() -> None:
    strings = {soc.name: soc.device for soc in DATA.socs if soc.device}
    assert strings["SM8650"] == ("SM8650", "SM8650P", "SM8650Q")
    with_suffix = {name for devices in strings.values() for name in devices if name.endswith(("P", "Q"))}
    assert with_suffix == {"SM8550P", "SM8650P", "SM8650Q", "SM8750P", "SM8735P", "SM8850P"}
    assert all(names.part_number_base(name) is None for devices in strings.values() for name in devices)


def test_flagships_are_public_and_have_fp16() -> None:
    by_name = {soc.name: soc for soc in DATA.socs}
    flagships = [by_name[name] for name in DATA.flagships]
    assert list(DATA.flagships) == sorted(DATA.flagships)
    assert all(soc.fp16 and soc.status is Status.PUBLIC for soc in flagships)
    assert {"SM8550", "SM8650", "SM8750", "SM8850", "QCS8550", "SA8295"} <= set(DATA.flagships)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        # soc-names, settled conflicts: what would be wrong if the other side had been believed
        ("SM8350", (30, "v68", 4, False)),
        ("SM7325", (35, "v68", 2, False)),
        ("SA8295", (39, "v68", 8, True)),
        ("SA8540", (62, "v68", 8, True)),
        ("SM8735", (85, "v73", 8, False)),
        ("SM8635", (68, "v73", 4, False)),
        ("SW6100", (96, "v81", 4, False)),
        ("SSG2125P", (58, "v73", 2, False)),
        ("SM7750", (86, "v73", 4, False)),
        ("CQ7790M", (102, "v73", 4, False)),
        ("QCS6490", (93, "v68", 2, False)),
        ("QCS8550", (66, "v73", 8, True)),
        ("SXR2230P", (53, "v69", 8, True)),
        ("SM8845", (97, "v81", 8, True)),
        ("SM8850", (87, "v81", 8, True)),
        ("SA8797", (72, "v81", 16, True)),
        ("SM8975", (103, "v85", 12, True)),
    ],
)
def test_conflicts_are_settled(name: str, facts: tuple[int, str, int, bool]) -> None:
    soc = next(soc for soc in DATA.socs if soc.name == name)
    assert (soc.soc_id, soc.arch, soc.vtcm_mb, soc.fp16) == facts


def test_chips_without_an_htp() -> None:
    by_name = {other.name: other for other in OTHERS}
    assert (by_name["SDM845"].soc_id, by_name["SDM845"].dsp, by_name["SDM845"].compiles) == (1, "v65", True)
    assert (by_name["SM8250"].soc_id, by_name["SM8250"].dsp) == (21, "v66")
    assert (by_name["SM4450"].soc_id, by_name["SM4450"].dsp) == (59, "none")
    assert (by_name["SC7280X"].soc_id, by_name["SC7280X"].compiles) == (44, False)
    for other in OTHERS:
        assert other.dsp in {"none", "unknown", "v65", "v66", *ARCHES}
        assert other.dsp not in ARCHES or other.note, (
            f"{other.name} has an HTP by its arch, so a note has to say why not"
        )
        assert not other.compiles or other.soc_id is not None


def test_an_unknown_key_or_a_bad_value_does_not_pass(tmp_path: Path) -> None:
    text = SOCS_FILE.read_text(encoding="utf-8")
    broken = tmp_path / "socs.yaml"
    broken.write_text(text.replace("    vtcm_mb: 12\n", "    vtcm_mb: 12\n    vtcm: 12\n"), encoding="utf-8")
    with pytest.raises(TypeError, match="vtcm"):
        read_socs(broken)
    broken.write_text(text.replace("fp16: true", "fp16: perhaps", 1), encoding="utf-8")
    with pytest.raises(KeyError, match="perhaps"):
        read_socs(broken)


def test_the_files_say_what_their_keys_mean() -> None:
    head = SOCS_FILE.read_text(encoding="utf-8").split("lists:")[0]
    assert all(key in head for key in REQUIRED | OPTIONAL if key != "note")
    assert "dsp" in OTHERS_FILE.read_text(encoding="utf-8").split("chips:")[0]
