"""Faults of reports: documents that cannot be read, a pull request that cannot be found, a GitHub that refuses."""

from qnn.errors.base import ExitCode, ForgeError


class UnreadableReport(ForgeError):
    """What: A report, or a document it is made of, cannot be read: too big, not JSON, another kind or schema
    version, or keys that are missing, unknown or of the wrong kind.

    Why: A pull request's jobs run code of whoever opened it, so what they hand over is read as if an attacker had
    written it. What is not exactly a report is not shown at all: the comment on the pull request stays as it was.

    Mend: Write the document again with the qnn-forge that reads it: `qnn-forge build --json`, `qnn-forge lint
    --format json`, `qnn-forge plan --json`, `qnn-forge report --format json`. In CI, look at the log of the job
    that wrote it.
    """

    id = "QF920"
    title = "a report cannot be read"
    exit_code = ExitCode.SYSTEM


class NoPullRequest(ForgeError):
    """What: No open pull request belongs to the run that the report is about.

    Why: The number is never taken from the report, which the pull request's own code could have written. It is
    looked up on GitHub by the commit the run was for. There is none when the pull request was closed, or when a
    newer commit was pushed: then the run for that commit will comment.

    Mend: Nothing, when the pull request was closed or has a newer commit. Otherwise run the workflow of its newest
    commit again.
    """

    id = "QF921"
    title = "a run without a pull request"
    exit_code = ExitCode.SYSTEM


class GitHubRefused(ForgeError):
    """What: GitHub's API refused a request, or could not be reached, after a few tries.

    Why: The message has the request, GitHub's answer and its status. 401 and 403 mean that the token is missing or
    may not do it, 404 that the repository or comment is not there or not visible, 422 that the content was refused.

    Mend: For 401, 403 and 404 give the job `permissions: {pull-requests: write}` and its `GITHUB_TOKEN`. For 5xx and
    timeouts run the job again.
    """

    id = "QF922"
    title = "GitHub refused a request"
    exit_code = ExitCode.SYSTEM


class NotAWorkflowRun(ForgeError):
    """What: The event file is not that of a finished workflow run.

    Why: The comment is written by a workflow that starts on `workflow_run`; the run, its commit and its repository
    are read from the event that GitHub wrote, at the path in GITHUB_EVENT_PATH.

    Mend: Call the script from a workflow with `on: workflow_run`.
    """

    id = "QF923"
    title = "not the event of a workflow run"
    exit_code = ExitCode.SYSTEM
