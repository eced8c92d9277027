"""Merge what the jobs handed over into one summary and one report, and say whether all went well.

WORK/parts holds what they left: plan.json, lint.json, results/*.json, hints/*.json, dist/. RUN_URL is the page of the
run, COMMIT what it built, NEEDS the results of the jobs before, PUBLISH true when every bundle must be fit to publish.
Writes report.json and summary.md into WORK/out.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from forge import WORK, append, output


def refusals(documents: list[dict[str, Any]]) -> list[str]:
    """Why these results of `qnn-forge build --json` may not be published; empty when they may."""
    targets = [target for document in documents for target in document["targets"]]
    if not targets:
        return ["nothing was built"]
    return [f"{target['name']} is {target['verdict']}" for target in targets if target["verdict"] != "ok"]


def main() -> None:
    parts = WORK / "parts"
    results = sorted(parts.glob("results/*.json"))
    options = [f"--run-url={os.environ['RUN_URL']}", f"--commit={os.environ['COMMIT']}"]
    options += [f"--{name}={parts / name}.json" for name in ("plan", "lint") if (parts / f"{name}.json").exists()]
    arguments = [*options, "--", *map(str, results), *map(str, sorted(parts.glob("hints/*.json")))]
    summary = output("report", "--format=summary", *arguments)
    append("GITHUB_STEP_SUMMARY", summary)
    out = WORK / "out"
    out.mkdir(parents=True, exist_ok=True)
    (out / "summary.md").write_text(summary, encoding="utf-8")
    (out / "report.json").write_text(output("report", "--format=json", *arguments))
    if {"failure", "cancelled"} & set(os.environ["NEEDS"].split()):
        sys.exit("::error title=Not everything was built::the summary of this run says what failed and what to do")
    if os.environ["PUBLISH"] == "true":
        refused = refusals([json.loads(path.read_text()) for path in results])
        if refused:
            sys.exit("::error title=Not to be published::" + "; ".join(refused).replace("%", "%25"))


if __name__ == "__main__":
    main()
