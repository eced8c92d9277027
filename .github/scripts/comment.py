"""Put the report of a pull request's run into its one comment. Called by comment.yaml on `workflow_run`.

IN is the folder of the artefact, which code of the pull request may have written. GITHUB_EVENT_PATH, GITHUB_API_URL and
GITHUB_TOKEN are as GitHub gives them. Nothing to comment on, or an artefact that is not exactly a report, leaves the
old comment and ends with 0 and a warning; a GitHub that refuses ends with qnn-forge's code 11 (docs/reports.md).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from qnn.errors.base import ForgeError
from qnn.errors.report import NoPullRequest, UnreadableReport
from qnn.report.event import workflow_run
from qnn.report.github import GitHub
from qnn.report.handover import hand_over, read_artifact
from qnn.report.strict import parse, read_file
from qnn.report.workflow_command import command

EVENT_BYTES = 32 << 20


def main() -> None:
    """Read the event, read the artefact, comment."""
    event = Path(os.environ["GITHUB_EVENT_PATH"])
    run = workflow_run(parse(read_file(event, EVENT_BYTES), event.name))
    if run.trigger != "pull_request":
        print(command("notice", "No comment", f"the run was started by {run.trigger}, not by a pull request"))
        return
    report = read_artifact(Path(os.environ["IN"]))
    with GitHub(os.environ["GITHUB_API_URL"], run.repository, os.environ["GITHUB_TOKEN"]) as github:
        for number, done in hand_over(github, run, report):
            print(f"comment on #{number}: {done}")


if __name__ == "__main__":
    try:
        main()
    except (UnreadableReport, NoPullRequest) as error:
        print(command("warning", f"{error.id}: the comment stays as it was", error.message))
    except ForgeError as error:
        print(command("error", f"{error.id}: {error.title}", f"{error.message}; {error.remedy}"))
        sys.exit(error.exit_code)
