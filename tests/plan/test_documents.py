"""What is printed of a plan: golden files for GitHub's matrices, the document and the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qnn.cli.plan_view import plan_lines
from qnn.plan.changes import Changes
from qnn.plan.documents import github_document, plan_document
from qnn.plan.jobs import Jobs, make_jobs
from qnn.plan.labels import Labels
from qnn.plan.planner import Plan, Request, make_plan
from tests.plan.samples import TABLE, costs, outline

GOLDEN = Path(__file__).parent / "golden"
MODELS = (
    outline("silero-vad", socs=("flagships", "SM8635")),
    outline("reader", buckets=("p320", "p640"), precisions=("fp16", "w8a8"), socs=("SM8*",)),
    outline("quiet"),
)
CHANGES = Changes(
    models={"silero-vad": "models/silero-vad/model.yaml changed"},
    chips={TABLE.lookup("SM8635").soc_id: "chip SM8635: vtcm_mb 2 → 4"},
    idle=3,
    notes=("model old is gone: nothing to build",),
)


def planned(request: Request) -> tuple[Plan, Jobs]:
    made = make_plan(MODELS, request, TABLE)
    return made, make_jobs(made.variants, costs(), "all")


def golden(name: str, text: str) -> None:
    """Compare with the golden file; delete it to have it written anew, and then look at it."""
    path = GOLDEN / name
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} was not there and is written now")
    assert text == path.read_text(encoding="utf-8")


def test_github() -> None:
    golden("github.json", json.dumps(github_document(*planned(Request(changes=CHANGES)), 1), indent=1, sort_keys=True))


def test_document() -> None:
    golden("plan.json", json.dumps(plan_document(*planned(Request(changes=CHANGES))), indent=1, sort_keys=True))


def test_table() -> None:
    golden("table.txt", "\n".join(plan_lines(*planned(Request(changes=CHANGES)))) + "\n")


def test_an_empty_plan_has_empty_matrices_and_says_why() -> None:
    made, jobs = planned(Request(changes=Changes(idle=1)))
    assert github_document(made, jobs, 1) == {
        "schema": 1, "empty": True, "dry_run": False, "part": 1, "parts": 1, "shards": 1, "jobs": 0, "cpu_minutes": 0,
        "bytes": 0, "prepare": {"include": []}, "compile": [{"include": []}],
        "reasons": [
            "1 changed file builds nothing", "nothing that is built was changed", "nothing is left to build",
        ],
    }  # fmt: skip
    assert plan_lines(made, jobs)[-2:] == [
        "0 variants, 0 chips, 0 bundles",
        "cost when nothing is in the store: 0 jobs (0 prepare, 0 compile), 0.0 CPU minutes, 0.0 MB of context binaries",
    ]


def test_a_dry_run_is_marked_and_still_says_what_would_be_built() -> None:
    made, jobs = planned(Request(changes=CHANGES, labels=Labels(dry_run=True)))
    found = github_document(made, jobs, 1)
    assert (found["dry_run"], found["empty"]) == (True, False)
    assert plan_lines(made, jobs)[-1] == "dry run: nothing of it is to be built"


@pytest.mark.parametrize("number", [1, 2])
def test_a_large_plan_comes_in_parts_that_together_are_the_whole(number: int) -> None:
    models = [outline(f"m{n:03d}", precisions=("w8a8",)) for n in range(300)]
    made = make_plan(models, Request(), TABLE)
    jobs = make_jobs(made.variants, costs(), "all")
    found = github_document(made, jobs, number)
    assert (found["part"], found["parts"], found["jobs"]) == (number, 2, 600)
    assert [len(shard["include"]) for shard in found["compile"]] == [[256], [44]][number - 1]
    document = plan_document(made, jobs)
    whole = [job["id"] for job in document["compile"] if job["part"] == number]
    assert [job["id"] for shard in found["compile"] for job in shard["include"]] == whole
    assert [job["id"] for job in found["prepare"]["include"]] == [
        job["id"] for job in document["prepare"] if job["part"] == number
    ]
