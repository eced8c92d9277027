"""From variants to jobs: nothing lost, nothing twice, no job too long or needlessly short, no matrix too large."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.plan.costs import Cost, load_costs
from qnn.plan.jobs import LONGEST_MINUTES, MATRIX_LIMIT, SHARDS_LIMIT, Jobs, group_chips, join_single, make_jobs
from qnn.plan.outline import read_outline
from qnn.plan.planner import PlannedVariant, Request, make_plan
from tests.plan.samples import TABLE, costs, outline

SOCS = TABLE.socs


def variants(count: int, chips: int = len(SOCS), bucket_count: int = 1) -> list[PlannedVariant]:
    models = [
        outline(f"m{number}", buckets=[f"b{b}" for b in range(bucket_count)], precisions=("w8a8",))
        for number in range(count)
    ]
    return [PlannedVariant(m, b, "w8a8", SOCS[:chips], ("asked for",)) for m in models for b in m.buckets]


def targets(jobs: Jobs) -> list[tuple[str, str, str, str]]:
    return [
        (job.variant.model.name, job.variant.bucket, job.variant.precision, soc.name)
        for part in jobs.parts
        for shard in part.shards
        for job in shard
        for soc in job.socs
    ]


def test_names_and_ids() -> None:
    jobs = make_jobs(variants(1, chips=12, bucket_count=2), costs(), "all")
    assert [(job.name, job.id) for job in jobs.prepare] == [
        ("m0 · b0 · w8a8", "m0.b0.w8a8"),
        ("m0 · b1 · w8a8", "m0.b1.w8a8"),
    ]
    (first, second) = jobs.compile
    assert (first.name, first.id, first.prepare_id) == (
        "m0 · b0 · w8a8 · CQ7790M +11",
        "m0.b0.w8a8.cq7790m",
        "m0.b0.w8a8",
    )
    assert second.prepare_id == "m0.b1.w8a8"
    alone = make_jobs(variants(1, chips=1), costs(), "all").compile[0]
    assert alone.name == "m0 · w8a8 · CQ7790M"


def test_minutes_and_bytes_are_what_the_costs_say() -> None:
    jobs = make_jobs(variants(1, chips=10), costs(setup=60, prepare=30, compiling=6, verify=12), "all")
    assert jobs.estimated == 1
    assert jobs.prepare[0].minutes == pytest.approx(1.5)
    assert jobs.compile[0].minutes == pytest.approx(1 + 10 * 0.3)
    assert jobs.minutes == pytest.approx(5.5)
    assert jobs.bytes == 10 * 10_000_000
    assert jobs.count == 2


def test_chips_are_shared_out_evenly_when_one_job_would_take_too_long() -> None:
    groups = group_chips(SOCS[:60], Cost(0, 10, 20, 0), 60, "all")  # 30 s a chip: 31 minutes in one job
    assert [len(socs) for socs, _ in groups] == [30, 30]
    assert [minutes for _, minutes in groups] == [16.0, 16.0]


def test_a_chip_that_takes_longer_than_a_job_may_stands_alone() -> None:
    groups = group_chips(SOCS[:3], Cost(0, 2000, 0, 0), 0, "all")
    assert [len(socs) for socs, _ in groups] == [1, 1, 1]


def test_verifying_one_chip_of_each_arch_costs_less_and_keeps_arches_together() -> None:
    cost = Cost(0, 6, 60, 0)
    every = group_chips(SOCS, cost, 30, "all")
    some = group_chips(SOCS, cost, 30, "per-arch")
    assert sum(minutes for _, minutes in some) < sum(minutes for _, minutes in every) / 4
    assert len(some) == 1
    (socs, minutes) = some[0]
    assert [soc.arch for soc in socs] == sorted(soc.arch for soc in socs)
    assert minutes == pytest.approx((30 + 6 * len(SOCS) + 60 * len({soc.arch for soc in SOCS})) / 60)


@given(
    st.integers(1, len(SOCS)),
    st.floats(0, 3000),
    st.floats(0, 3000),
    st.floats(0, 120),
    st.sampled_from(["all", "per-arch"]),
)
def test_no_group_is_over_twenty_minutes_or_under_one_where_that_can_be(
    count: int, compiling: float, verify: float, setup: float, policy: str
) -> None:
    groups = group_chips(SOCS[:count], Cost(0.0, compiling, verify, 0), setup, policy)
    assert sorted(soc.name for socs, _ in groups for soc in socs) == [soc.name for soc in SOCS[:count]]
    for socs, minutes in groups:
        assert minutes <= LONGEST_MINUTES or len(socs) == 1
        assert minutes >= 1 or len(groups) == 1
    sizes = [len(socs) for socs, _ in groups]
    assert max(sizes) - min(sizes) <= 1


PLANS = st.lists(
    st.builds(
        PlannedVariant,
        st.builds(
            outline,
            st.text("abc-", min_size=1, max_size=3),
            buckets=st.just(("p", "p-w8a8")),
            precisions=st.just(("fp16", "w8a8")),
            weights=st.integers(0, 10**9),
            samples=st.integers(1, 100),
        ),
        st.sampled_from(["p", "p-w8a8"]),
        st.sampled_from(["fp16", "w8a8"]),
        st.lists(st.sampled_from(SOCS), min_size=1, unique=True).map(tuple),
        st.just(("asked for",)),
    ),
    max_size=8,
    unique_by=lambda variant: (variant.model.name, variant.bucket, variant.precision),
)


@given(PLANS, st.sampled_from(["all", "per-arch"]), st.booleans())
def test_every_target_is_in_exactly_one_job_and_every_job_finds_what_was_prepared(
    planned: list[PlannedVariant], policy: str, join: bool
) -> None:
    jobs = make_jobs(planned, load_costs(), policy)
    jobs = join_single(jobs, load_costs()) if join else jobs
    found = targets(jobs)
    assert len(set(found)) == len(found)
    wanted = {(v.model.name, v.bucket, v.precision, soc.name) for v in planned for soc in v.socs}
    assert set(found) == wanted
    ids = [job.id for job in (*jobs.prepare, *jobs.compile)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9._-]+", name) for name in ids)
    for part in jobs.parts:
        here = {job.id for job in part.prepare}
        for job in (job for shard in part.shards for job in shard):
            assert job.prepare_id in here or (join and job.prepare_id == "")
    assert not jobs.prepare or len(jobs.prepare) == len({job.variant.title for job in jobs.prepare})


@pytest.mark.parametrize(
    ("count", "buckets", "compiling"), [(1000, 3, 2.0), (300, 1, 900.0), (5, 1, 2000.0), (256, 1, 1.0)]
)
def test_no_matrix_is_larger_than_github_takes(count: int, buckets: int, compiling: float) -> None:
    """1,000 models × 65 chips × 3 variants among them."""
    planned = variants(count, 65, buckets)
    jobs = make_jobs(planned, costs(compiling=compiling, verify=0), "all")
    assert sum(len(part.prepare) for part in jobs.parts) == len(planned) == len(jobs.prepare)
    for part in jobs.parts:
        assert 0 < len(part.prepare) <= MATRIX_LIMIT
        assert 0 < len(part.shards) <= SHARDS_LIMIT
        assert all(0 < len(shard) <= MATRIX_LIMIT for shard in part.shards)
    assert len(set(targets(jobs))) == len(planned) * 65
    assert len(jobs.parts) < MATRIX_LIMIT or compiling > 100


def test_an_empty_plan_has_one_part_with_one_empty_matrix() -> None:
    (part,) = make_jobs([], costs(), "all").parts
    assert (part.prepare, part.shards) == ((), ((),))


def test_joined_jobs_prepare_for_themselves_unless_that_takes_too_long() -> None:
    jobs = make_jobs(variants(1, chips=10), costs(setup=60, prepare=30, compiling=6, verify=12), "all")
    joined = join_single(jobs, costs(setup=60))
    assert (joined.count, joined.prepare, joined.compile[0].prepare_id) == (1, [], "")
    assert joined.minutes == pytest.approx(4.5)
    assert joined.bytes == jobs.bytes
    long = make_jobs(variants(1, chips=1), costs(setup=60, prepare=700, compiling=700, verify=0), "all")
    assert join_single(long, costs(setup=60)) == long
    several = make_jobs(variants(1), costs(compiling=100), "all")
    assert len(several.compile) > 1
    assert join_single(several, costs()) == several


def test_measured_costs_come_before_estimates() -> None:
    table = costs()
    known, other = outline("known", precisions=("fp16",)), outline("other", precisions=("fp16", "w8a8"), samples=3)
    assert table.variant(known, "fp16") == Cost(1.0, 2.0, 3.0, 4_000)
    assert table.variant(other, "fp16") == Cost(5.0, 2.0, 30.0, 5_000_000)
    assert table.variant(other, "w8a8").bytes == 10_000_000
    assert (table.is_measured(known), table.is_measured(other)) == (True, False)
    assert table.variant(outline("unpinned", weights=0), "fp16") == table.variant(outline("x"), "fp16")


def test_costs_of_the_demo_were_measured() -> None:
    for name in ("ppocr-v4", "silero-vad", "speech-embedding"):
        folder = Path(__file__).parents[2] / "models" / name
        assert load_costs().is_measured(read_outline(folder)), f"python -m benchmarks.stage_costs measures {name}"


def test_larger_weights_never_cost_less() -> None:
    table = load_costs()
    sizes = [table.variant(outline(weights=weights), "fp16") for weights in (1, 10**6, 10**8, 10**9)]
    for small, large in itertools.pairwise(sizes):
        assert (small.prepare, small.compile, small.verify, small.bytes) < (
            large.prepare, large.compile, large.verify, large.bytes,
        )  # fmt: skip


def test_a_whole_plan_at_the_size_promised() -> None:
    models = [outline(f"m{number:04d}", precisions=("fp16", "w8a8", "w8a16")) for number in range(1000)]
    jobs = make_jobs(make_plan(models, Request(socs=("all",)), TABLE).variants, load_costs(), "all")
    assert len(jobs.prepare) == 3000
    assert max(len(shard) for part in jobs.parts for shard in part.shards) <= MATRIX_LIMIT
