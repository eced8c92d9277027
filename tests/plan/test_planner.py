"""What is planned, and why: requests, changes, labels, and the chips a change is built for."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.chips.soc import Soc, Status
from qnn.chips.table import ChipTable
from qnn.errors.chips import NoChipSelected, NoFp16, UnknownChip
from qnn.errors.plan import ChipNotTargeted, NothingToBuild, UnknownBucket, UnknownPrecision
from qnn.model.load import find_models, load_models
from qnn.plan.changes import Changes
from qnn.plan.labels import Labels, read_labels
from qnn.plan.outline import Outline, read_outlines
from qnn.plan.planner import Plan, Request, folders_needed, make_plan
from qnn.plan.targets import Wanted, plan_build
from tests.plan.samples import TABLE, outline

ALL = {soc.name for soc in TABLE.socs}
FP16 = {soc.name for soc in TABLE.socs if soc.fp16}
FLAGSHIPS = {soc.name for soc in TABLE.flagships}
TOUCHED = Changes(models={"toy": "models/toy/data.py changed"})


def plan(*models: Outline, labels: tuple[str, ...] = (), **request: Any) -> Plan:
    return make_plan(models or (outline(),), Request(labels=read_labels(labels), **request), TABLE)


def chips(made: Plan, variant: int = 0) -> set[str]:
    return {soc.name for soc in made.variants[variant].socs}


def test_everything_is_planned_when_nothing_is_said() -> None:
    made = plan(outline("b", precisions=("fp16", "w8a8")), outline("a", buckets=("p1", "p2")))
    assert [(v.model.name, v.bucket, v.precision) for v in made.variants] == [
        ("a", "p1", "fp16"), ("a", "p2", "fp16"), ("b", "default", "fp16"), ("b", "default", "w8a8"),
    ]  # fmt: skip
    assert [variant.title for variant in made.variants] == ["a · p1 · fp16", "a · p2 · fp16", "b · fp16", "b · w8a8"]
    assert (chips(made, 2), chips(made, 3)) == (FP16, ALL)
    assert made.reasons == ("no change was given: everything asked for is planned",)
    assert made.variants[0].reasons(made.variants[0].socs[0]) == ("asked for",)
    (without,) = [left for left in made.left_out if left.model == "b"]
    assert (without.precision, set(without.socs), without.reason) == ("fp16", ALL - FP16, "no fp16")


def test_a_request_narrows_by_globs() -> None:
    model = outline(buckets=("p320", "p640", "s1"), precisions=("fp16", "w8a8", "w8a16"))
    made = plan(model, socs=("SM8650", "SM87*"), buckets=("p*",), precisions=("w8a*",))
    assert [(v.bucket, v.precision) for v in made.variants] == [
        ("p320", "w8a8"), ("p320", "w8a16"), ("p640", "w8a8"), ("p640", "w8a16"),
    ]  # fmt: skip
    assert chips(made) == {"SM8650", "SM8735", "SM8750"}


def test_exclusions_keep_their_reason() -> None:
    made = plan(outline(socs=("SM8650", "SM8750"), exclude=((("SM8750",), "crashes\x1b[31m"),)))
    assert chips(made) == {"SM8650"}
    assert [(left.socs, left.reason) for left in made.left_out] == [
        (("SM8750",), "excluded by the model: crashes�[31m")
    ]


@pytest.mark.parametrize(
    ("request_", "fault", "words"),
    [
        ({"buckets": ("p9",)}, UnknownBucket, "no model has a bucket p9"),
        ({"precisions": ("int4",)}, UnknownPrecision, "no model has a precision int4"),
        ({"socs": ("SA8295",)}, ChipNotTargeted, "SA8295 is not a target of any model"),
        ({"socs": ("SM8650", "SA8295")}, ChipNotTargeted, "SA8295"),
        ({"socs": ("SM8550",)}, ChipNotTargeted, "excluded by the model: crashes"),
        ({"socs": ("SM8635",)}, NoFp16, "SM8635"),
        ({"socs": ("SA8*",)}, NothingToBuild, "no model × bucket × precision × chip"),
        ({"socs": ("SM9999",)}, UnknownChip, "SM9999"),
        ({"socs": ("X*",), "precisions": ("fp16",)}, NothingToBuild, "no model"),
        ({"socs": ("Y*",)}, NoChipSelected, "matches no chip"),
    ],
)
def test_a_request_that_comes_to_nothing_says_why(request_: dict[str, Any], fault: type[Exception], words: str) -> None:
    model = outline(socs=("SM8*",), exclude=((("SM8550",), "crashes"),))
    with pytest.raises(fault, match=words):
        plan(model, **request_)


def test_a_chip_of_a_model_yaml_that_does_not_exist_is_named_with_the_file() -> None:
    with pytest.raises(UnknownChip) as caught:
        plan(outline(socs=("SM9999",)))
    assert str(caught.value.place) == "models/toy/model.yaml"


def test_a_changed_model_is_built_for_one_chip_of_each_group_and_the_flagships() -> None:
    made = plan(outline("toy", precisions=("w8a8",)), outline("other"), changes=TOUCHED)
    (variant,) = made.variants
    assert chips(made) >= FLAGSHIPS
    groups = {soc.group for soc in TABLE.socs}
    assert {soc.group for soc in variant.socs} == groups
    assert len(variant.socs) == len(groups) + sum(
        len([soc for soc in TABLE.flagships if soc.group == group]) - 1 for group in {s.group for s in TABLE.flagships}
    )
    assert variant.why == ("models/toy/data.py changed",)
    assert made.reasons == (
        "toy: models/toy/data.py changed",
        "chips: one of each group, and the flagships (label socs:all for every one)",
    )


def test_a_group_whose_best_known_chip_is_no_target_is_built_for_another_of_it() -> None:
    best = TABLE.lookup("SM8650")
    others = [soc for soc in TABLE.groups[best.group] if soc.name not in FLAGSHIPS]
    made = plan(outline(socs=[soc.name for soc in others]), changes=TOUCHED)
    assert len(made.variants[0].socs) == 1
    assert made.variants[0].socs[0] in others


def test_the_chip_of_a_group_is_a_flagship_else_a_public_one_else_the_first() -> None:
    group = max(TABLE.groups.values(), key=len)
    first, *_, last = sorted(group, key=lambda soc: soc.soc_id)
    public = tuple(dataclasses.replace(soc, status=Status.PUBLIC) for soc in TABLE.socs)
    hidden = tuple(
        dataclasses.replace(soc, status=Status.PUBLIC if soc == last else Status.COMPILER_ONLY) for soc in TABLE.socs
    )

    def chosen(table: ChipTable, chips: Sequence[Soc]) -> set[str]:
        model = outline(socs=[soc.name for soc in chips], precisions=("w8a8",))
        return {soc.name for soc in make_plan([model], Request(changes=TOUCHED), table).variants[0].socs}

    assert chosen(dataclasses.replace(TABLE, socs=public, flagships=()), group) == {first.name}
    assert chosen(dataclasses.replace(TABLE, socs=public, flagships=(last,)), group) == {last.name}
    assert chosen(dataclasses.replace(TABLE, socs=hidden, flagships=()), group) == {last.name}
    assert chosen(dataclasses.replace(TABLE, socs=hidden, flagships=(first,)), group) == {first.name}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("socs:all",), FP16),
        (("soc:SM8650",), {"SM8650"}),
        (("soc:SM8650", "soc:SM8750", "socs:all"), {"SM8650", "SM8750"}),
        (("soc:8 Gen 3",), {"SM8650"}),
        (("soc:flagships",), FLAGSHIPS),
        (("model:t*", "soc:SM8650"), {"SM8650"}),
    ],
)
def test_labels_choose_chips_and_models(labels: tuple[str, ...], expected: set[str]) -> None:
    made = plan(outline("toy"), outline("other"), changes=TOUCHED, labels=labels)
    assert [variant.model.name for variant in made.variants] == ["toy"]
    assert chips(made) == expected


def test_a_label_and_a_request_meet() -> None:
    assert chips(plan(changes=TOUCHED, labels=("soc:SM8*",), socs=("SM8650,SA8295",))) == {"SM8650"}


@pytest.mark.parametrize(
    "label", ["soc:nothing*", "soc:SM9999", "soc:!all", "soc:[", "model:other", "model:[", "model:$(x)"]
)
def test_labels_that_name_nothing_leave_nothing(label: str) -> None:
    for changes in (TOUCHED, None):
        made = plan(changes=changes, labels=(label,))
        assert made.variants == ()
        assert made.reasons[-2:] == (f"label {label}", "nothing is left to build")


def test_skip_and_dry_run() -> None:
    made = plan(changes=TOUCHED, labels=("ci:skip",))
    assert (made.variants, made.reasons) == ((), ("label ci:skip: nothing is built",))
    made = plan(changes=TOUCHED, labels=("ci:dry-run",))
    assert made.dry_run
    assert made.variants
    assert "label ci:dry-run: nothing is built, this is only the plan" in made.reasons


def test_a_changed_chip_is_built_for_every_model_that_is_for_it() -> None:
    changes = Changes(chips={TABLE.lookup("SM8635").soc_id: "chip SM8635: vtcm_mb 2 → 4", 57: "chip SM8650: fp16"})
    models = (outline("a", precisions=("fp16", "w8a8")), outline("b", socs=("SM8750",)), outline("c", socs=("SM8650",)))
    made = plan(*models, changes=changes)
    assert [(v.model.name, v.precision, [soc.name for soc in v.socs]) for v in made.variants] == [
        ("a", "fp16", ["SM8650"]),
        ("a", "w8a8", ["SM8635", "SM8650"]),
        ("c", "fp16", ["SM8650"]),
    ]
    assert made.variants[1].reasons(TABLE.lookup("SM8635")) == ("chip SM8635: vtcm_mb 2 → 4",)
    assert made.reasons == ("chip SM8635: vtcm_mb 2 → 4", "chip SM8650: fp16")
    assert made.left_out == ()


def test_a_changed_chip_joins_the_chips_of_a_changed_model() -> None:
    quiet = next(soc for soc in TABLE.socs if soc.fp16 and soc.name not in chips(plan(changes=TOUCHED)))
    changes = Changes(models=TOUCHED.models, chips={quiet.soc_id: "chip is new"})
    assert chips(plan(changes=changes)) == chips(plan(changes=TOUCHED)) | {quiet.name}


def test_changed_code_builds_every_model() -> None:
    made = plan(outline("a"), outline("b"), changes=Changes(everything=("code of compile: x.py",), idle=2))
    assert [variant.why for variant in made.variants] == [("code of compile: x.py",)] * 2
    assert made.reasons[:2] == ("code of compile: x.py", "2 changed files build nothing")


def test_no_change_that_matters_is_an_empty_plan() -> None:
    made = plan(changes=Changes(idle=1, notes=("model old is gone: nothing to build",)))
    assert made.variants == ()
    assert made.reasons == (
        "model old is gone: nothing to build",
        "1 changed file builds nothing",
        "nothing that is built was changed",
        "nothing is left to build",
    )


def test_only_the_folders_that_matter_are_read() -> None:
    names = ["a", "b", "toy"]
    assert folders_needed(names, Request()) == ("a", "b", "toy")
    assert folders_needed(names, Request(changes=TOUCHED)) == ("toy",)
    assert folders_needed(names, Request(changes=Changes(idle=3))) == ()
    assert folders_needed(names, Request(changes=Changes(chips={57: "new"}))) == ("a", "b", "toy")
    assert folders_needed(names, Request(changes=Changes(everything=("code",)))) == ("a", "b", "toy")
    assert folders_needed(names, Request(labels=Labels(skip=True))) == ()
    assert folders_needed(names, Request(labels=Labels(models=("[at]*",)))) == ("a", "toy")


MODELS = st.lists(
    st.builds(
        outline,
        st.text("abc", min_size=1, max_size=3),
        socs=st.sampled_from([("all",), ("SM8*", "QCS8550"), ("flagships",), ("public",)]),
        exclude=st.sampled_from([(), ((("SM8650",), "no"),)]),
        buckets=st.sampled_from([("default",), ("p1", "p2")]),
        precisions=st.sampled_from([("fp16",), ("w8a8", "fp16"), ("w8a16",)]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda model: model.name,
)
CHANGES = st.builds(
    Changes,
    everything=st.sampled_from([(), (), ("code",)]),
    models=st.dictionaries(st.text("abc", min_size=1, max_size=3), st.just("changed"), max_size=3),
    chips=st.dictionaries(st.sampled_from([soc.soc_id for soc in TABLE.socs]), st.just("row"), max_size=3),
)
LABELS = st.lists(st.sampled_from(["socs:all", "soc:SM8*", "soc:x", "model:a*", "ci:skip", "ci:dry-run", "x\n`$(y)`"]))


@given(MODELS, st.none() | CHANGES, LABELS, st.integers())
def test_every_target_comes_once_with_a_reason_and_in_any_order_of_models(
    models: list[Outline], changes: Changes | None, labels: list[str], seed: int
) -> None:
    request = Request(labels=read_labels(labels), changes=changes)
    try:
        made = make_plan(models, request, TABLE)
    except NothingToBuild:
        assert changes is None
        return
    shuffled = random.Random(seed).sample(models, len(models))
    assert make_plan(shuffled, request, TABLE) == made
    targets = [(v.model.name, v.bucket, v.precision, soc.name) for v in made.variants for soc in v.socs]
    assert len(set(targets)) == len(targets)
    by_name = {model.name: model for model in models}
    for variant in made.variants:
        assert variant.socs
        assert variant.bucket in by_name[variant.model.name].buckets
        for soc in variant.socs:
            assert variant.reasons(soc)
            assert variant.precision != "fp16" or soc.fp16
            assert not (soc.name == "SM8650" and variant.model.exclude)
    if made.variants:
        assert not request.labels.skip
    elif changes is None:
        assert labels


@given(MODELS, CHANGES)
def test_what_changed_is_what_is_planned(models: list[Outline], changes: Changes) -> None:
    """Held against the rule itself, written out target by target."""
    whole = make_plan(models, Request(), TABLE)
    made = make_plan(models, Request(changes=changes, labels=Labels(all_socs=True)), TABLE)
    expected = {
        (v.model.name, v.bucket, v.precision, soc.name)
        for v in whole.variants
        for soc in v.socs
        if changes.everything or v.model.name in changes.models or soc.soc_id in changes.chips
    }
    assert {(v.model.name, v.bucket, v.precision, soc.name) for v in made.variants for soc in v.socs} == expected


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(),
        Wanted(socs=("SM8650", "QCS8550")),
        Wanted(socs=("SM8*", "!SM8550"), precisions=("fp*",)),
        Wanted(socs=("all",), buckets=("d*", "p*")),
        Wanted(socs=("groups", "flagships")),
    ],
)
def test_plan_and_build_agree_on_the_models_here(wanted: Wanted) -> None:
    folders = find_models((), Path(__file__).parents[2] / "models")
    built = plan_build(load_models(folders), wanted, TABLE)
    request = Request(socs=wanted.socs, buckets=wanted.buckets, precisions=wanted.precisions)
    made = make_plan(read_outlines(folders), request, TABLE)
    assert [
        (variant.model.name, variant.bucket, variant.precision, soc.name)
        for variant in made.variants
        for soc in variant.socs
    ] == [
        (target.variant.model.name, target.variant.bucket, target.variant.precision, target.soc.name)
        for target in built.targets
    ]
    left = sum(len(skip.socs) for skip in made.left_out)
    assert left == len(built.skipped)


def test_a_model_of_a_restricted_licence_is_planned_only_when_that_is_allowed() -> None:
    restricted = dataclasses.replace(outline(socs=("SM8650", "SM8550")), restriction="X forbids commercial use")
    other = outline("other", socs=("SM8650",))
    made = make_plan([restricted, other], Request(), TABLE)
    assert [variant.model.name for variant in made.variants] == ["other"]
    reason = "X forbids commercial use; --allow-restricted builds it all the same"
    assert [(skip.model, skip.reason, sorted(skip.socs)) for skip in made.left_out] == [
        ("toy", reason, ["SM8550", "SM8650"])
    ]
    allowed = make_plan([restricted, other], Request(allow_restricted=True), TABLE)
    assert [variant.model.name for variant in allowed.variants] == ["other", "toy"]
