"""From the artefact of a pull request's run to the comment: what .github/scripts/comment.py does, step by step."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from qnn.report.comment import comment
from qnn.report.document import Report
from qnn.report.event import WorkflowRun
from qnn.report.sticky import Repository, pull_numbers, put_comment
from qnn.report.strict import MAX_BYTES, read_file, read_report

# The only file of the artefact that is looked at.
REPORT_FILE = "report.json"


def read_artifact(folder: Path) -> Report:
    """The report in the folder of an artefact that anyone may have written. Raises UnreadableReport (QF920)."""
    return read_report(read_file(folder / REPORT_FILE, MAX_BYTES), REPORT_FILE)


def hand_over(github: Repository, run: WorkflowRun, report: Report) -> Iterable[tuple[int, str]]:
    """Comment on every pull request of the run; gives each number and what was done. Raises QF921 and QF922.

    Commit, branch and links are the event's, whatever the report says of them.
    """
    body = comment(report, run.origin)
    for number in pull_numbers(github, run):
        yield number, put_comment(github, number, body)
