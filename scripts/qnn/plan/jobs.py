"""Variants and chips as jobs: one to twenty minutes long where that can be, at most 256 in a matrix.

Pure. A variant is prepared in one job. Its chips are compiled and verified in as few jobs of equal size as stay below
twenty minutes; when one job does for all of them it may take less than a minute, since a job holds one variant only.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from qnn.chips.soc import Soc
from qnn.plan.costs import Cost, CostTable
from qnn.plan.planner import PlannedVariant

# GitHub's limit for one matrix, and how many compile matrices a workflow has.
MATRIX_LIMIT = 256
SHARDS_LIMIT = 4
LONGEST_MINUTES = 20.0

# Chips and CPU minutes of each job.
Groups: TypeAlias = "tuple[tuple[tuple[Soc, ...], float], ...]"


@dataclass(frozen=True)
class Job:
    """One job. `id` is a unique file name of [a-z0-9._-]; `name` is for people; `minutes` of CPU, setup included."""

    id: str
    name: str
    variant: PlannedVariant
    minutes: float


@dataclass(frozen=True)
class CompileJob(Job):
    """Compile, read back and verify one variant for some chips; prepare it too if `prepare_id` is empty."""

    prepare_id: str
    socs: tuple[Soc, ...]


@dataclass(frozen=True)
class Part:
    """A piece of a plan that one run of a workflow can do alone: no matrix of it has more than 256 jobs."""

    prepare: tuple[Job, ...]
    shards: tuple[tuple[CompileJob, ...], ...]


@dataclass(frozen=True)
class VariantJobs:
    """The jobs of one variant. `prepare` is None when its only compile job prepares it.

    `bytes` are those of its binaries; `measured` is whether the costs are, or are estimates.
    """

    variant: PlannedVariant
    prepare: Job | None
    compile: tuple[CompileJob, ...]
    bytes: int
    measured: bool

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All of them."""
        return self.compile if self.prepare is None else (self.prepare, *self.compile)

    @property
    def minutes(self) -> float:
        """CPU minutes of all of them."""
        return sum(job.minutes for job in self.jobs)


@dataclass(frozen=True)
class Jobs:
    """Every job of a plan, variant by variant."""

    variants: tuple[VariantJobs, ...]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The jobs as matrices; at least one part, which may be empty. A variant's jobs stay together."""
        return _parts(self.variants)

    @property
    def prepare(self) -> list[Job]:
        """All prepare jobs, in order."""
        return [jobs.prepare for jobs in self.variants if jobs.prepare is not None]

    @property
    def compile(self) -> list[CompileJob]:
        """All compile jobs, in order."""
        return [job for jobs in self.variants for job in jobs.compile]

    @property
    def count(self) -> int:
        """How many jobs there are."""
        return sum(len(jobs.jobs) for jobs in self.variants)

    @property
    def minutes(self) -> float:
        """CPU minutes of all."""
        return sum(jobs.minutes for jobs in self.variants)

    @property
    def estimated(self) -> int:
        """How many variants have estimated costs."""
        return sum(not jobs.measured for jobs in self.variants)

    @property
    def bytes(self) -> int:
        """Of all context binaries."""
        return sum(jobs.bytes for jobs in self.variants)


def make_jobs(variants: Sequence[PlannedVariant], costs: CostTable, policy: str) -> Jobs:
    """The jobs of the variants, in their order. `policy` is `all` or `per-arch`: which binaries are verified."""
    made: list[VariantJobs] = []
    known: dict[tuple[tuple[int, ...], Cost], Groups] = {}  # models of one kind share chips and costs
    for variant in variants:
        cost = costs.variant(variant.model, variant.precision)
        prepare = Job(
            id=f"{variant.model.name}.{variant.bucket}.{variant.precision}",
            name=variant.title,
            variant=variant,
            minutes=(costs.setup + cost.prepare) / 60,
        )
        key = (tuple(soc.soc_id for soc in variant.socs), cost)
        if key not in known:
            known[key] = group_chips(variant.socs, cost, costs.setup, policy)
        made.append(
            VariantJobs(
                variant=variant,
                prepare=prepare,
                compile=_compile_jobs(prepare, known[key]),
                bytes=cost.bytes * len(variant.socs),
                measured=costs.is_measured(variant.model),
            )
        )
    return Jobs(tuple(made))


def join_single(jobs: Jobs, costs: CostTable) -> Jobs:
    """The same without prepare jobs that only one other job waits for, unless both together are over twenty minutes.

    The `prepare_id` of that compile job is empty: it makes what it needs itself, and two machines become one.
    """
    return Jobs(tuple(_joined(jobs_of_one, costs.setup / 60) for jobs_of_one in jobs.variants))


def _joined(jobs: VariantJobs, setup: float) -> VariantJobs:
    if jobs.prepare is None or len(jobs.compile) > 1:
        return jobs
    minutes = jobs.minutes - setup
    if minutes > LONGEST_MINUTES:
        return jobs
    alone = dataclasses.replace(jobs.compile[0], prepare_id="", minutes=minutes)
    return dataclasses.replace(jobs, prepare=None, compile=(alone,))


def _compile_jobs(prepare: Job, groups: Groups) -> tuple[CompileJob, ...]:
    return tuple(
        CompileJob(
            id=f"{prepare.id}.{socs[0].name.lower()}",
            name=f"{prepare.name} · {socs[0].name}" + (f" +{len(socs) - 1}" if len(socs) > 1 else ""),
            variant=prepare.variant,
            minutes=minutes,
            prepare_id=prepare.id,
            socs=socs,
        )
        for socs, minutes in groups
    )


def group_chips(socs: tuple[Soc, ...], cost: Cost, setup: float, policy: str) -> Groups:
    """The fewest jobs of equally many chips (give or take one) of which none is over twenty minutes.

    A single chip that takes longer has a job of its own. With `per-arch`, chips of one arch stand together, since each
    job verifies the first chip of every arch it holds.
    """
    ordered = socs if policy == "all" else tuple(sorted(socs, key=lambda soc: (soc.arch, soc.name)))
    for count in range(1, len(ordered) + 1):
        chunks = _even(ordered, count)
        minutes = [_minutes(chunk, cost, setup, policy) for chunk in chunks]
        if max(minutes) <= LONGEST_MINUTES or count == len(ordered):
            return tuple(zip(chunks, minutes, strict=True))
    return ()


def _even(socs: tuple[Soc, ...], count: int) -> list[tuple[Soc, ...]]:
    bounds = [len(socs) * number // count for number in range(count + 1)]
    return [socs[start:end] for start, end in itertools.pairwise(bounds)]


def _minutes(socs: tuple[Soc, ...], cost: Cost, setup: float, policy: str) -> float:
    verified = len(socs) if policy == "all" else len({soc.arch for soc in socs})
    return (setup + cost.compile * len(socs) + cost.verify * verified) / 60


def _parts(variants: Sequence[VariantJobs]) -> tuple[Part, ...]:
    """Fill one part after the other."""
    parts: list[Part] = []
    prepare: list[Job] = []
    compiled: list[CompileJob] = []
    for jobs in variants:
        if len(prepare) == MATRIX_LIMIT or len(compiled) + len(jobs.compile) > MATRIX_LIMIT * SHARDS_LIMIT:
            parts.append(_part(prepare, compiled))
            prepare, compiled = [], []
        prepare += () if jobs.prepare is None else (jobs.prepare,)
        compiled += jobs.compile
    return (*parts, _part(prepare, compiled)) if compiled or not parts else tuple(parts)


def _part(prepare: Sequence[Job], compiled: Sequence[CompileJob]) -> Part:
    shards = (compiled[start : start + MATRIX_LIMIT] for start in range(0, len(compiled), MATRIX_LIMIT))
    return Part(tuple(prepare), tuple(tuple(shard) for shard in shards) or ((),))
