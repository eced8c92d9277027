"""A plan as JSON: the whole of it for programs, and the matrices of one part for GitHub's workflows. Pure."""

from __future__ import annotations

from typing import Any

from qnn.plan.jobs import CompileJob, Job, Jobs
from qnn.plan.planner import Plan

SCHEMA = 1


def plan_document(plan: Plan, jobs: Jobs) -> dict[str, Any]:
    """The --json document (schema 1): every job with its reasons, what was left out, and the cost."""
    return {
        "schema": SCHEMA,
        "empty": not plan.variants,
        "dry_run": plan.dry_run,
        "parts": len(jobs.parts),
        "targets": sum(len(variant.socs) for variant in plan.variants),
        **_cost(jobs),
        "estimated": jobs.estimated,
        "reasons": list(plan.reasons),
        "prepare": [
            {**_entry(job), "part": number}
            for number, part in enumerate(jobs.parts, 1)
            for job in part.prepare
        ],
        "compile": [
            {**_compile_entry(job), **_why(job), "part": number, "shard": shard_number}
            for number, part in enumerate(jobs.parts, 1)
            for shard_number, shard in enumerate(part.shards, 1)
            for job in shard
        ],
        "left_out": [
            {
                "model": left.model,
                "bucket": left.bucket,
                "precision": left.precision,
                "socs": ",".join(left.socs),
                "reason": left.reason,
            }
            for left in plan.left_out
        ],
    }  # fmt: skip


def github_document(plan: Plan, jobs: Jobs, number: int) -> dict[str, Any]:
    """Matrices of one part (counted from 1), at most 256 jobs each: what a workflow's `strategy.matrix` takes.

    `jobs`, `cpu_minutes` and `bytes` are of the whole plan.
    """
    part = jobs.parts[number - 1]
    return {
        "schema": SCHEMA,
        "empty": not plan.variants,
        "dry_run": plan.dry_run,
        "part": number,
        "parts": len(jobs.parts),
        "shards": len(part.shards),
        **_cost(jobs),
        "reasons": list(plan.reasons),
        "prepare": {"include": [_entry(job) for job in part.prepare]},
        "compile": [{"include": [_compile_entry(job) for job in shard]} for shard in part.shards],
    }


def _cost(jobs: Jobs) -> dict[str, Any]:
    return {"jobs": jobs.count, "cpu_minutes": round(jobs.minutes, 1), "bytes": jobs.bytes}


def _entry(job: Job) -> dict[str, Any]:
    return {
        "name": job.name,
        "id": job.id,
        "model": job.variant.model.folder,
        "bucket": job.variant.bucket,
        "precision": job.variant.precision,
    }


def _compile_entry(job: CompileJob) -> dict[str, Any]:
    return {
        **_entry(job),
        "prepare_id": job.prepare_id,
        "socs": ",".join(soc.name for soc in job.socs),
        "minutes": round(job.minutes, 1),
    }


def _why(job: CompileJob) -> dict[str, Any]:
    """Reasons of all chips of the job, and those that only some have, by chip."""
    own = job.variant.chip_why
    return {
        "why": list(job.variant.why),
        "chip_why": {soc.name: own[soc.name] for soc in job.socs if soc.name in own},
    }
