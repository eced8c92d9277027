"""What a plan (`qnn-forge plan --json` or `--github`) tells a report: the cost, the reasons, and every bundle meant."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Any

from qnn.report.document import Plan, Result
from qnn.report.strict import structure, unreadable

_SCHEMA = 1


@dataclass(frozen=True)
class Planned:
    """`targets` are the bundles meant, each as a result that is missing; `folders` where each model lies, by name."""

    plan: Plan
    targets: tuple[Result, ...]
    folders: dict[str, str]


@dataclass(frozen=True)
class _Job:
    model: str
    bucket: str
    precision: str
    socs: str


@dataclass(frozen=True)
class _Matrix:
    include: tuple[_Job, ...]


@dataclass(frozen=True)
class _Head:
    schema: int
    dry_run: bool
    jobs: int
    cpu_minutes: float
    bytes: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _Listed:
    compile: tuple[_Job, ...]


@dataclass(frozen=True)
class _Matrices:
    compile: tuple[_Matrix, ...]


def read_plan(document: dict[str, Any], name: str) -> Planned:
    """A plan from its document. Raises UnreadableReport (QF920)."""
    head = structure(document, _Head, name, extra=True)
    if head.schema != _SCHEMA:
        raise unreadable(name, f"its schema version is not {_SCHEMA}")
    jobs = _jobs(document, name)
    return Planned(
        plan=Plan(head.dry_run, head.jobs, head.cpu_minutes, head.bytes, head.reasons),
        targets=tuple(_missing(job, soc) for job in jobs for soc in job.socs.split(",") if soc),
        folders={_name(job.model): job.model for job in jobs},
    )


def _jobs(document: dict[str, Any], name: str) -> tuple[_Job, ...]:
    """The compile jobs: a list with --json, matrices with --github."""
    matrices = document.get("compile")
    if isinstance(matrices, list) and any(isinstance(item, dict) and "include" in item for item in matrices):
        shards = structure(document, _Matrices, name, extra=True)
        return tuple(job for matrix in shards.compile for job in matrix.include)
    return structure(document, _Listed, name, extra=True).compile


def _missing(job: _Job, soc: str) -> Result:
    return Result(
        model=_name(job.model),
        version="",
        path=job.model,
        bucket=job.bucket,
        precision=job.precision,
        soc=soc,
        verdict="missing",
        reused=False,
        seconds=0.0,
        archive=None,
        sha256=None,
        graphs=(),
        failure=None,
    )


def _name(folder: str) -> str:
    """A model's name is that of its folder (lint rule QF102)."""
    return posixpath.basename(folder.rstrip("/")) or folder
