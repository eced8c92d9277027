"""Ask `qnn-forge plan` what to build and hand this run's share of it to GitHub.

REQUEST holds the inputs of the workflow. Writes WORK/out/plan.json, the plan as a table into the step summary, and the
outputs prepare and compile (matrices), empty, and shards (a JSON list of numbers).
"""

from __future__ import annotations

import json
import os
from typing import Any

from forge import WORK, Request, append, output, request

# GitHub takes 1 MiB of a step; this leaves room for the heading.
SUMMARY_BYTES = 1_000_000


def arguments(asked: Request) -> list[str]:
    """The command line of `qnn-forge plan`. Values that begin with a dash stay values."""
    options = [f"--soc={expression}" for expression in asked.socs]
    options += [f"--precision={name}" for name in asked.precisions]
    options += [f"--changed-from={asked.changed_from}"] if asked.changed_from else []
    options += [f"--labels={asked.labels}"] if asked.labels else []
    options += ["--join"] if asked.join else []
    return [*options, f"--models-dir={asked.models_dir}", "--", *asked.models]


def shares(parts: list[dict[str, Any]], jobs: int) -> list[list[dict[str, Any]]]:
    """The compile matrices of all parts of a plan, those of more than `jobs` jobs cut."""
    matrices = [matrix["include"] for part in parts for matrix in part["compile"]]
    return [matrix[start : start + jobs] for matrix in matrices for start in range(0, len(matrix), jobs)]


def share(parts: list[dict[str, Any]], shard: int, jobs: int) -> dict[str, Any]:
    """The step's outputs: the compile jobs of this share, and the prepare jobs those need."""
    cut = shares(parts, jobs)
    mine = cut[shard] if shard < len(cut) and not parts[0]["dry_run"] else []
    needed = {job["prepare_id"] for job in mine}
    prepare = [job for part in parts for job in part["prepare"]["include"] if job["id"] in needed]
    return {
        "prepare": {"include": prepare},
        "compile": {"include": mine},
        "empty": not mine,
        "shards": list(range(len(cut))),
    }


def shortened(table: str) -> str:
    """At most SUMMARY_BYTES of a table: its beginning, and its end, which holds the cost."""
    if len(table.encode()) <= SUMMARY_BYTES:
        return table
    lines = table.splitlines(keepends=True)
    longest = max(len(line.encode()) for line in lines)
    kept = SUMMARY_BYTES // longest // 2
    return "".join([*lines[:kept], "    … plan.json in the artifact has all rows\n", *lines[-kept:]])


def ask(command: list[str]) -> list[dict[str, Any]]:
    """The plan in its parts; most plans have one."""
    first = json.loads(output("plan", "--github", *command))
    more = range(2, first["parts"] + 1)
    return [first, *(json.loads(output("plan", "--github", f"--part={part}", *command)) for part in more)]


def main() -> None:
    asked = request(os.environ["REQUEST"])
    command = arguments(asked)
    mine = share(ask(command), asked.shard or 0, asked.shard_jobs)
    out = WORK / "out"
    out.mkdir(parents=True, exist_ok=True)
    # The report holds results against the plan; a share alone would look like most of it is missing.
    if asked.shard is None or len(mine["shards"]) <= 1:
        (out / "plan.json").write_text(output("plan", "--json", *command))
    # Indented text is a code block in which nothing is markdown: names appear as they are.
    table = "".join(f"    {line}\n" for line in output("plan", *command).splitlines())
    append("GITHUB_STEP_SUMMARY", f"### Plan\n\n{shortened(table)}\n")
    append("GITHUB_OUTPUT", "".join(f"{name}={json.dumps(value)}\n" for name, value in sorted(mine.items())))
    left = len(mine["shards"]) - 1
    if left > 0:
        print(
            f"::notice title=Shares::share {asked.shard} of {left + 1} is built here; the input `shard` picks another"
        )


if __name__ == "__main__":
    main()
