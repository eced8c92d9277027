"""Keep one issue that says what the nightly run found: opened or edited when something fails, closed when nothing does.

NEEDS holds the results of the jobs before, RUN_URL the page of the run; `gh` reads GH_TOKEN and GH_REPO.
"""

from __future__ import annotations

import json
import os
import subprocess

from forge import WORK, output

TITLE = "Nightly build fails"
LABEL = "nightly"


def main() -> None:
    failed = bool({"failure", "cancelled"} & set(os.environ["NEEDS"].split()))
    number = open_issue()
    if failed:
        write(number, body())
    elif number is not None:
        gh("issue", "close", number, "--comment", f"All models build again: {os.environ['RUN_URL']}")


def body() -> str:
    """The report of all shares as markdown; the address of the run alone when there is nothing to report on."""
    parts = WORK / "parts"
    results = sorted(map(str, parts.glob("results/*.json")))
    if not results:
        return f"The run failed before anything was built: {os.environ['RUN_URL']}\n"
    options = [f"--run-url={os.environ['RUN_URL']}", f"--plan={parts / 'plan.json'}"]
    return output("report", "--format=comment", *options, "--", *results)


def open_issue() -> str | None:
    """Number of the open tracking issue."""
    listed = json.loads(gh("issue", "list", "--label", LABEL, "--state", "open", "--limit", "1", "--json", "number"))
    return str(listed[0]["number"]) if listed else None


def write(number: str | None, text: str) -> None:
    """Edit the issue, or open it."""
    file = WORK / "issue.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    if number is None:
        gh("label", "create", LABEL, "--force", "--description", "Found by the nightly build")
        gh("issue", "create", "--title", TITLE, "--label", LABEL, "--body-file", str(file))
    else:
        gh("issue", "edit", number, "--body-file", str(file))


def gh(*command: str) -> str:
    """Standard output of a gh command; a failure ends the script."""
    return subprocess.run(["gh", *command], stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main()
