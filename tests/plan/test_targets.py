"""What a build is asked to make: chips, buckets and precisions chosen, everything else left out with a reason."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.chips.table import load_table
from qnn.errors.chips import NoChipSelected, NoFp16
from qnn.errors.plan import ChipNotTargeted, NothingToBuild, UnknownBucket, UnknownPrecision
from qnn.model.spec import Checks, Exclusion, Graph, InputSpec, Licence, Limits, Model, Publish, Targets
from qnn.plan.targets import Wanted, plan_build

TABLE = load_table()
MODEL = Model(
    name="toy",
    version="1",
    summary="A toy.",
    task="test",
    licence=Licence("MIT"),
    sources={},
    graphs=(Graph("main", {"*": "weights"}, (InputSpec("x", (1, "n")),), "weights"),),
    buckets={"small": {"n": 8}, "large": {"n": 64}},
    precisions=("fp16", "w8a8"),
    targets=Targets(("SM8*",), (Exclusion(("SM8550",), "crashes on it"),)),
    checks=Checks(),
    requires=(),
    limits=Limits(),
    publish=Publish(),
    folder=Path("models/toy"),
)


def names(
    *socs: str, model: Model = MODEL, buckets: tuple[str, ...] = (), precisions: tuple[str, ...] = ()
) -> list[str]:
    wanted = Wanted(socs=socs, buckets=buckets, precisions=precisions)
    return [target.name for target in plan_build([model], wanted, TABLE).targets]


def test_one_chip_gives_every_bucket_and_precision_in_order() -> None:
    assert names("SM8650") == [
        "toy-1-large-fp16-SM8650",
        "toy-1-large-w8a8-SM8650",
        "toy-1-small-fp16-SM8650",
        "toy-1-small-w8a8-SM8650",
    ]


def test_buckets_and_precisions_narrow_it() -> None:
    assert names("SM8650", buckets=("sm*",), precisions=("w8*",)) == ["toy-1-small-w8a8-SM8650"]
    with pytest.raises(UnknownBucket, match="toy has no bucket medium") as bucket:
        names("SM8650", buckets=("medium",))
    assert bucket.value.remedy == "choose among: large, small"
    with pytest.raises(UnknownPrecision, match="toy has no precision int4"):
        names("SM8650", precisions=("int4",))


def test_a_bucket_that_only_some_models_have_leaves_the_others_out() -> None:
    other = dataclasses.replace(MODEL, name="other", buckets={"medium": {"n": 32}})
    plan = plan_build([MODEL, other], Wanted(socs=("SM8650",), buckets=("med*",), precisions=("fp16",)), TABLE)
    assert [target.name for target in plan.targets] == ["other-1-medium-fp16-SM8650"]


def test_a_model_of_a_restricted_licence_is_built_only_when_that_is_allowed() -> None:
    restricted = dataclasses.replace(MODEL, licence=Licence("AGPL-3.0-only"))
    plan = plan_build([restricted, MODEL], Wanted(socs=("SM8650",), buckets=("small",)), TABLE)
    assert [target.variant.model.licence.spdx for target in plan.targets] == ["MIT", "MIT"]
    reason = "AGPL-3.0-only asks whoever offers a service with it to publish the service's source"
    assert {skip.reason for skip in plan.skipped} == {f"{reason}; --allow-restricted builds it all the same"}
    with pytest.raises(NothingToBuild) as nothing:
        plan_build([restricted], Wanted(socs=("SM8650",)), TABLE)
    assert "--allow-restricted" in nothing.value.details[0]
    allowed = plan_build([restricted], Wanted(socs=("SM8650",), allow_restricted=True), TABLE)
    assert [target.soc.name for target in allowed.targets] == ["SM8650"] * 4


def test_a_chip_without_fp16_is_skipped_when_a_glob_brought_it_in() -> None:
    plan = plan_build([MODEL], Wanted(("SM8*",), ("small",), ("fp16",)), TABLE)
    assert all(target.soc.fp16 for target in plan.targets)
    assert {skip.soc.name: skip.reason for skip in plan.skipped}["SM8635"] == "SM8635 has no fp16"


def test_a_chip_without_fp16_named_outright_gets_what_it_can() -> None:
    assert names("SM8635", buckets=("small",)) == ["toy-1-small-w8a8-SM8635"]
    with pytest.raises(NoFp16, match="SM8635"):
        names("8s Gen 3", precisions=("fp16",))  # by its marketing name


def test_a_chip_that_the_model_excludes() -> None:
    assert "SM8550" not in " ".join(names("SM8[56]50"))
    with pytest.raises(ChipNotTargeted, match=r"SM8550 is not a target of toy: excluded by the model: crashes on it"):
        names("SM8550")
    with pytest.raises(ChipNotTargeted, match="SA8295 is not a target of toy: not among the model's targets"):
        names("SA8295,SM8650")


def test_a_chip_that_another_model_takes_is_no_error() -> None:
    other = dataclasses.replace(MODEL, name="other", targets=Targets(("SA8295",)))
    plan = plan_build([MODEL, other], Wanted(("SA8295",), ("small",), ("fp16",)), TABLE)
    assert [target.name for target in plan.targets] == ["other-1-small-fp16-SA8295"]
    assert [skip.variant.model.name for skip in plan.skipped] == ["toy"]


def test_nothing_left_says_why() -> None:
    model = dataclasses.replace(MODEL, precisions=("fp16",), targets=Targets(("SM86*",)))
    with pytest.raises(NothingToBuild) as caught:
        names("SM8635*", model=model)
    assert any("no fp16" in line for line in caught.value.details)


@given(st.lists(st.sampled_from(["SM8650", "SM87*", "flagships", "all", "!SM8750", "QCS8550"]), min_size=1, max_size=4))
def test_targets_and_skips_part_what_was_asked_for(socs: list[str]) -> None:
    model = dataclasses.replace(MODEL, targets=Targets(("all",), MODEL.targets.exclude))
    try:
        plan = plan_build([model], Wanted(tuple(socs)), TABLE)
    except NoChipSelected:
        return  # it only takes away, or leaves nothing; tests/chips says more
    made = [(target.variant.name, target.soc.soc_id) for target in plan.targets]
    left = [(skip.variant.name, skip.soc.soc_id) for skip in plan.skipped]
    assert len(set(made)) == len(made)
    assert not set(made) & set(left)
    chips = {chip for _, chip in made + left}
    assert len(made) + len(left) == len(chips) * 4
