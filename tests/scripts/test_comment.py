""".github/scripts/comment.py against a GitHub on this machine: whose comment is edited, and what never is."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from qnn.errors.report import GitHubRefused, NoPullRequest, NotAWorkflowRun
from qnn.report.comment import MARKER
from qnn.report.escape import visible
from qnn.report.event import workflow_run
from qnn.report.fit import to_json
from qnn.report.github import GitHub
from qnn.report.sticky import pull_numbers, put_comment
from qnn.report.workflow_command import command
from tests.report.documents import build, failed, job, plan, target
from tests.report.test_escape import HOSTILE
from tests.report.test_markdown import is_harmless, made, many
from tests.scripts.fake_github import READER, TOKEN, FakeGitHub, serve

SCRIPT = Path(__file__).parents[2] / ".github" / "scripts" / "comment.py"
HEAD = "a" * 40


def event(**changes: Any) -> dict[str, Any]:
    """What GitHub writes when a pull request's run has ended."""
    run = {
        "event": "pull_request",
        "head_sha": HEAD,
        "head_branch": "topic",
        "head_repository": {"full_name": "acme/models"},
        "html_url": "https://github.com/acme/models/actions/runs/42",
        "pull_requests": [{"number": 7}],
    }
    repository = {"full_name": "acme/models", "html_url": "https://github.com/acme/models"}
    return {"action": "completed", "workflow_run": run | changes, "repository": repository}


@dataclass(frozen=True)
class Run:
    """One run of the script."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Desk:
    """A GitHub with pull request 7 open, and a folder for the artefact."""

    github: FakeGitHub
    folder: Path

    def put(self, raw: bytes | str) -> None:
        """The artefact's report.json."""
        path = self.folder / "in" / "report.json"
        path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())

    def run(self, given: dict[str, Any] | None = None, *, token: str = TOKEN) -> Run:
        """Run the script for an event."""
        (self.folder / "event.json").write_text(json.dumps(given or event()))
        done = subprocess.run(
            [sys.executable, str(SCRIPT)],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
                "GITHUB_API_URL": self.github.address,
                "GITHUB_TOKEN": token,
                "IN": str(self.folder / "in"),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Run(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / "in").mkdir()
    with serve(FakeGitHub()) as github:
        github.pull(7, HEAD)
        made_desk = Desk(github, tmp_path)
        made_desk.put(to_json(made(build(target(), failed("SM8550")))))
        yield made_desk


def test_the_first_report_makes_a_comment_and_the_next_edits_it(desk: Desk) -> None:
    desk.github.comment(7, "Nice work!", {"login": "ann", "type": "User"})
    first = desk.run()
    assert (first.code, first.out, first.err) == (0, "comment on #7: created\n", "")
    assert desk.github.bodies(7)[1].startswith(f"{MARKER}\n### ❌ 1 of 2 bundles failed\n")

    desk.put(to_json(made(build(target(), target("SM8550")))))
    assert desk.run().out == "comment on #7: edited\n"
    assert desk.github.bodies(7)[0] == "Nice work!"
    assert desk.github.bodies(7)[1].startswith(f"{MARKER}\n### ✅ 2 bundles built and verified\n")
    assert len(desk.github.bodies(7)) == 2

    assert desk.run().out == "comment on #7: kept\n"


def test_commit_branch_and_links_are_the_events(desk: Desk) -> None:
    report = made(build(target()))
    desk.put(to_json(dataclasses.replace(report, commit="b" * 40, run_url="https://evil.example/actions/runs/1")))
    desk.run()
    (body,) = desk.github.bodies(7)
    assert "evil" not in body
    assert (
        f'<a href="https://github.com/acme/models/commit/{HEAD}"><code>aaaaaaaaaaaa</code></a> of <code>topic</code>'
        in body
    )
    assert '<a href="https://github.com/acme/models/actions/runs/42">the run</a>' in body


def test_a_report_of_three_thousand_results_is_accepted(desk: Desk) -> None:
    desk.put(to_json(many(300, "some")))
    assert desk.run().out == "comment on #7: created\n"


# Whose comment


def test_the_marker_of_somebody_else_is_left_alone(desk: Desk) -> None:
    theirs = f"{MARKER}\nlooks like ours"
    desk.github.comment(7, theirs, {"login": "mallory", "type": "User"})
    desk.github.comment(7, theirs, {"login": "other[bot]", "type": "Bot"})
    desk.github.comment(7, theirs, {"login": "github-actions[bot]", "type": "User"})
    desk.github.comment(7, f"quoting {MARKER}")
    assert desk.run().out == "comment on #7: created\n"
    assert desk.github.bodies(7)[:4] == [theirs, theirs, theirs, f"quoting {MARKER}"]
    assert len(desk.github.bodies(7)) == 5


def test_our_comment_is_found_on_the_last_page(desk: Desk) -> None:
    for number in range(250):
        desk.github.comment(7, f"{number}", {"login": "ann", "type": "User"})
    own = desk.github.comment(7, f"{MARKER}\nold")
    assert desk.run().out == "comment on #7: edited\n"
    assert desk.github.comments[own]["body"].startswith(f"{MARKER}\n### ")
    assert sum(request.endswith("/comments") for request in desk.github.requests) == 3


def test_the_token_does_not_travel_to_another_host(desk: Desk) -> None:
    for number in range(101):
        desk.github.comment(7, f"{number}", {"login": "ann", "type": "User"})
    desk.github.pages_elsewhere = True
    done = desk.run()
    assert done.code == 11
    assert "the next page is on another host" in done.out
    assert sum(request.endswith("/comments") for request in desk.github.requests) == 1


def test_a_comment_deleted_meanwhile_is_made_again(desk: Desk) -> None:
    body = f"{MARKER}\nnew"

    class Gone(GitHub):
        def edit_comment(self, comment: int, body: str) -> bool:
            del desk.github.comments[comment]
            return super().edit_comment(comment, body)

    desk.github.comment(7, f"{MARKER}\nold")
    with Gone(desk.github.address, "acme/models", TOKEN) as github:
        assert put_comment(github, 7, body) == "created"
    assert desk.github.bodies(7) == [body]


# Which pull request


def test_a_fork_is_found_by_its_owner_and_branch(desk: Desk) -> None:
    desk.github.pull(8, HEAD, head="mallory:$(touch x)")
    desk.github.pull(9, "c" * 40, head="mallory:$(touch x)")
    fork = event(pull_requests=[], head_branch="$(touch x)", head_repository={"full_name": "mallory/models"})
    assert desk.run(fork).out == "comment on #8: created\n"
    assert desk.github.bodies(7) == desk.github.bodies(9) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"head_sha": "d" * 40},
        {"pull_requests": [{"number": 404}], "head_repository": None},
        {"pull_requests": [], "head_branch": None},
        {"pull_requests": [], "head_repository": None},
        {"pull_requests": [], "head_branch": "other"},
    ],
)
def test_a_run_without_an_open_pull_request_says_why(desk: Desk, changes: dict[str, Any]) -> None:
    old = desk.github.comment(7, f"{MARKER}\nold")
    done = desk.run(event(**changes))
    assert done.code == 0
    assert done.out.startswith("::warning title=QF921%3A the comment stays as it was::no open pull request has commit ")
    assert desk.github.comments[old]["body"] == f"{MARKER}\nold"


def test_a_closed_pull_request_is_left_alone(desk: Desk) -> None:
    desk.github.pull(7, HEAD, state="closed")
    assert "QF921" in desk.run().out
    assert desk.github.bodies(7) == []


def test_the_same_commit_in_another_repository_is_another_matter(desk: Desk) -> None:
    desk.github.pull(8, HEAD, head="mallory:topic")
    fork = event(pull_requests=[{"number": 7}, {"number": 8}], head_repository={"full_name": "mallory/models"})
    assert desk.run(fork).out == "comment on #8: created\n"
    assert desk.github.bodies(7) == []


def test_the_number_is_never_taken_from_the_artefact(desk: Desk) -> None:
    desk.github.pull(1, "e" * 40)
    desk.put(json.dumps(json.loads(to_json(made(build(target())))) | {"number": 1}))
    done = desk.run()
    assert "extra fields found (number)" in done.out
    assert desk.github.comments == {}


def test_a_run_of_something_else_is_passed_over(desk: Desk) -> None:
    done = desk.run(event(event="push"))
    assert (done.code, done.out) == (
        0,
        "::notice title=No comment::the run was started by push, not by a pull request\n",
    )
    assert desk.github.requests == []


@pytest.mark.parametrize("key", ["event", "head_sha", "html_url"])
def test_an_event_of_another_kind(key: str) -> None:
    given = event()
    del given["workflow_run"][key]
    with pytest.raises(NotAWorkflowRun, match=f"the event has no {key}"):
        workflow_run(given)


def test_an_event_of_another_kind_ends_with_its_code(desk: Desk) -> None:
    done = desk.run({"action": "opened"})
    assert done.code == 11
    assert done.out.startswith(
        "::error title=QF923%3A not the event of a workflow run::the event has no workflow_run; "
    )


# Hostile artefacts


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b" " * ((1 << 20) + 1), "report.json: more than 1,048,576 bytes"),
        (b"not json", "report.json: not JSON: Expecting value"),
        (b'{"kind": "qnn-forge-report", "schema": 2}', "report.json: its schema version is not 1"),
        (b'{"kind": "else", "schema": 1}', "report.json: its kind is not qnn-forge-report"),
        (
            to_json(made()).replace('"tally"', '"\\n::error::x":1,"tally"').encode(),
            "extra fields found (\\n::error::x)",
        ),
    ],
)
def test_a_bad_artefact_leaves_the_old_comment_and_says_why(desk: Desk, raw: bytes, reason: str) -> None:
    old = desk.github.comment(7, f"{MARKER}\nold")
    desk.put(raw)
    done = desk.run()
    assert done.code == 0
    assert done.out.startswith("::warning title=QF920%3A the comment stays as it was::")
    assert reason in done.out
    assert len(done.out.splitlines()) == 1
    assert desk.github.comments[old]["body"] == f"{MARKER}\nold"
    assert desk.github.requests == []


def test_an_artefact_that_is_a_link_or_not_there(desk: Desk) -> None:
    path = desk.folder / "in" / "report.json"
    path.unlink()
    assert "report.json: No such file or directory" in desk.run().out
    path.symlink_to(desk.folder / "event.json")
    assert "QF920" in desk.run().out
    assert desk.github.comments == {}


@pytest.mark.parametrize(
    "text", ["$(touch pwned); `id` \"'&|", "@all [x](https://evil.example)\n\n# y", "</details>::error::"]
)
def test_a_hostile_title_branch_label_or_model_name_is_only_text(desk: Desk, text: str) -> None:
    reasons = [f"label {text} asks for every chip"]
    planned = plan(job("SM8550", model=f"models/x{text}"), reasons=reasons)
    desk.put(to_json(made(build(failed(model=f"x{text}", error={"message": text})), plan=planned)))
    given = event(head_branch=f"x{text}", display_title=f"title {text}")
    assert desk.run(given).out == "comment on #7: created\n"
    (body,) = desk.github.bodies(7)
    shown = is_harmless(body)
    assert f"of x{visible(text)} ·" in shown
    assert f"label {visible(text)} asks for every chip" in shown
    assert f"x{visible(text)}: 1 of " in shown
    assert "title" not in shown
    assert not list(desk.folder.rglob("pwned"))


# A GitHub that refuses


def client(desk: Desk, waits: list[float], token: str = TOKEN) -> GitHub:
    return GitHub(desk.github.address, "acme/models", token, sleep=waits.append)


@pytest.mark.parametrize(
    ("token", "said"),
    [("wrong", "GET /repos/acme/models/pulls/7: 401 Bad credentials"), (READER, "403 Resource not accessible")],
)
def test_a_token_that_may_not(desk: Desk, token: str, said: str) -> None:
    done = desk.run(token=token)
    assert done.code == 11
    assert done.out.startswith("::error title=QF922%3A GitHub refused a request::")
    assert said in done.out
    assert token not in done.out + done.err
    assert desk.github.bodies(7) == []


def test_a_body_github_does_not_take(desk: Desk) -> None:
    with client(desk, []) as github, pytest.raises(GitHubRefused, match="422 Validation Failed"):
        put_comment(github, 7, f"{MARKER}{'x' * 70_000}")


def test_a_pull_request_that_is_not_there(desk: Desk) -> None:
    with client(desk, []) as github, pytest.raises(GitHubRefused, match=r"POST .*/issues/99/comments: 404 Not Found"):
        put_comment(github, 99, MARKER)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_what_passes_is_asked_again(desk: Desk, status: int) -> None:
    desk.github.failures = [(status, {})] * 3
    waits: list[float] = []
    with client(desk, waits) as github:
        assert pull_numbers(github, workflow_run(event())) == (7,)
    assert waits == [1.0, 2.0, 4.0]


def test_what_does_not_pass_is_given_up(desk: Desk) -> None:
    desk.github.failures = [(503, {})] * 9
    waits: list[float] = []
    with client(desk, waits) as github, pytest.raises(GitHubRefused, match="503 failed with 503"):
        github.pull(7)
    assert waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(("status", "after", "wait"), [(429, "7", 7.0), (403, "9", 9.0), (429, "9999", 60.0)])
def test_a_rate_limit_is_waited_for(desk: Desk, status: int, after: str, wait: float) -> None:
    desk.github.failures = [(status, {"Retry-After": after})]
    waits: list[float] = []
    with client(desk, waits) as github:
        assert github.pull(7) is not None
    assert waits == [wait]


def test_a_comment_that_may_have_been_made_is_not_made_twice(desk: Desk) -> None:
    desk.github.failures = [(502, {})]
    waits: list[float] = []
    with client(desk, waits) as github, pytest.raises(GitHubRefused, match="502"):
        github.create_comment(7, MARKER)
    assert waits == []


def test_a_github_that_cannot_be_reached(desk: Desk) -> None:
    waits: list[float] = []
    with GitHub("http://127.0.0.1:9", "acme/models", TOKEN, sleep=waits.append) as github:
        with pytest.raises(GitHubRefused, match="ConnectError"):
            github.pull(7)
        with pytest.raises(GitHubRefused, match="ConnectError"):
            github.create_comment(7, MARKER)
    assert waits == [1.0, 2.0, 4.0] * 2


def test_no_pull_request_at_all(desk: Desk) -> None:
    with client(desk, []) as github, pytest.raises(NoPullRequest):
        pull_numbers(github, workflow_run(event(head_sha="f" * 40)))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_workflow_command_is_one_line_whatever_it_says(text: str) -> None:
    line = command("warning", f"a{text}", f"b{text}")
    assert len(line.splitlines()) == 1
    assert line.startswith("::warning title=a")
    assert line.removeprefix("::warning title=").split("::", 1)[1].startswith("b")


def test_the_script_needs_little_more_than_python(desk: Desk) -> None:
    """comment.yaml installs cattrs and httpx alone: less code beside a token that can write."""
    blocked = (
        "import sys\nfor name in ('yaml', 'jsonschema', 'packaging', 'numpy', 'onnx', 'click', 'filelock', 'rich'):\n"
    )
    run = f"{blocked}    sys.modules[name] = None\nimport runpy\nrunpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    (desk.folder / "event.json").write_text(json.dumps(event()))
    given = {"IN": str(desk.folder / "in"), "GITHUB_EVENT_PATH": str(desk.folder / "event.json"), "GITHUB_TOKEN": TOKEN}
    done = subprocess.run(
        [sys.executable, "-c", run],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "GITHUB_API_URL": desk.github.address,
            **given,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "comment on #7: created\n"), done.stderr


def test_the_fake_refuses_as_github_does(desk: Desk) -> None:
    root = f"{desk.github.address}/repos"
    url = f"{root}/acme/models/issues/7/comments"
    writer, reader = {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"Bearer {READER}"}
    assert httpx.post(url, json={"body": "x"}).status_code == 401
    assert httpx.post(url, json={"body": "x"}, headers=reader).status_code == 403
    assert httpx.post(url, json={"body": ""}, headers=writer).status_code == 422
    assert httpx.get(f"{root}/o/r/pulls", headers=writer).status_code == 404
    theirs = desk.github.comment(7, "x", {"login": "ann", "type": "User"})
    edit = httpx.patch(f"{root}/acme/models/issues/comments/{theirs}", json={"body": "y"}, headers=writer)
    assert edit.status_code == 403
