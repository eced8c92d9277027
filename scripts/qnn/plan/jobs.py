"""Variants and chips as jobs: one to twenty minutes long where that can be, at most 256 in a matrix.

Pure. A variant is prepared in one job. Its chips are compiled and verified in as few jobs of equal size as stay below
twenty minutes; when one job does for all of them it may take less than a minute, since a job holds one variant only.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """Compile, read back and verify one variant for some chips."""

    prepare_id: str
    socs: tuple[Soc, ...]


@dataclass(frozen=True)
class Part:
    """A piece of a plan that one run of a workflow can do alone: no matrix of it has more than 256 jobs."""

    prepare: tuple[Job, ...]
    shards: tuple[tuple[CompileJob, ...], ...]


@dataclass(frozen=True)
class Jobs:
    """Every job of a plan. `bytes_of` are those of all context binaries by prepare id; minutes are of CPU."""

    parts: tuple[Part, ...]
    bytes_of: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """Of all context binaries."""
        return sum(self.bytes_of.values())

    @property
    def prepare(self) -> list[Job]:
        """All prepare jobs, in order."""
        return [job for part in self.parts for job in part.prepare]

    @property
    def compile(self) -> list[CompileJob]:
        """All compile jobs, in order."""
        return [job for part in self.parts for shard in part.shards for job in shard]

    @property
    def count(self) -> int:
        """How many jobs there are."""
        return len(self.prepare) + len(self.compile)

    @property
    def minutes(self) -> float:
        """CPU minutes of all."""
        return sum(job.minutes for job in self.prepare) + sum(job.minutes for job in self.compile)


def make_jobs(variants: Sequence[PlannedVariant], costs: CostTable, policy: str) -> Jobs:
    """The jobs of the variants, in their order. `policy` is `all` or `per-arch`: which binaries are verified."""
    pairs = []
    bytes_of: dict[str, int] = {}
    known: dict[tuple[tuple[int, ...], Cost], Groups] = {}  # models of one kind share chips and costs
    for variant in variants:
        cost = costs.variant(variant.model, variant.precision)
        prepare = Job(
            id=f"{variant.model.name}.{variant.bucket}.{variant.precision}",
            name=variant.title,
            variant=variant,
            minutes=(costs.setup + cost.prepare) / 60,
        )
        bytes_of[prepare.id] = cost.bytes * len(variant.socs)
        key = (tuple(soc.soc_id for soc in variant.socs), cost)
        if key not in known:
            known[key] = group_chips(variant.socs, cost, costs.setup, policy)
        pairs.append((prepare, _compile_jobs(prepare, known[key])))
    return Jobs(_parts(pairs), bytes_of)


def _compile_jobs(prepare: Job, groups: Groups) -> list[CompileJob]:
    return [
        CompileJob(
            id=f"{prepare.id}.{socs[0].name.lower()}",
            name=f"{prepare.name} · {socs[0].name}" + (f" +{len(socs) - 1}" if len(socs) > 1 else ""),
            variant=prepare.variant,
            minutes=minutes,
            prepare_id=prepare.id,
            socs=socs,
        )
        for socs, minutes in groups
    ]


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


def _parts(pairs: Sequence[tuple[Job, list[CompileJob]]]) -> tuple[Part, ...]:
    """Fill one part after the other; a variant and all its jobs stay together."""
    parts: list[Part] = []
    prepare: list[Job] = []
    compiled: list[CompileJob] = []
    for job, jobs in pairs:
        if len(prepare) == MATRIX_LIMIT or len(compiled) + len(jobs) > MATRIX_LIMIT * SHARDS_LIMIT:
            parts.append(_part(prepare, compiled))
            prepare, compiled = [], []
        prepare.append(job)
        compiled += jobs
    return (*parts, _part(prepare, compiled)) if prepare or not parts else tuple(parts)


def _part(prepare: Sequence[Job], compiled: Sequence[CompileJob]) -> Part:
    shards = (compiled[start : start + MATRIX_LIMIT] for start in range(0, len(compiled), MATRIX_LIMIT))
    return Part(tuple(prepare), tuple(tuple(shard) for shard in shards) or ((),))
