"""The workflows without running them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.workflows.checks import faults
from tests.workflows.conftest import BIN, ROOT, WORKFLOWS, document

FILES = sorted([*WORKFLOWS.glob("*.yaml"), *ROOT.glob(".github/actions/*/action.yml")])
NAMES = {path.stem for path in WORKFLOWS.iterdir()}

GOOD = """\
name: good
on:
  pull_request:
permissions: {}
concurrency: {group: a, cancel-in-progress: true}
jobs:
  one:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions: {contents: read}
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with: {persist-credentials: false}
      - uses: actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1
        with: {name: x, path: x, overwrite: true}
      - run: echo "$TITLE"
        env: {TITLE: "${{ github.event.pull_request.title }}"}
"""


def test_there_are_the_workflows_a_maintainer_expects() -> None:
    assert {
        "build-models", "pull-request", "comment", "nightly", "release", "docker", "ci", "security", "zoo", "fuzz",
    } <= NAMES  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_workflow_keeps_the_rules(path: Path) -> None:
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (" # v7.0.1", "", "not pinned"),
        ("@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7", "not pinned"),
        ("permissions: {}\n", "", "permissions at the top"),
        ("    timeout-minutes: 5\n", "", "no timeout-minutes"),
        ("    permissions: {contents: read}\n", "    permissions: write-all\n", "no permissions of its own"),
        ("{contents: read}", "{contents: write}", "can write"),
        ("        with: {persist-credentials: false}\n", "", "keeps its credentials"),
        (", overwrite: true", "", "run again"),
        ('echo "$TITLE"', "echo ${{ github.event.pull_request.title }}", "an expression inside run"),
        ("${{ github.event.pull_request.title }}", "${{ secrets.HF_TOKEN }}", "a secret"),
        ("concurrency: {group: a, cancel-in-progress: true}\n", "", "no concurrency"),
    ],
)
def test_each_rule_finds_its_breach(old: str, new: str, fault: str) -> None:
    assert faults(GOOD) == []
    broken = GOOD.replace(old, new)
    assert broken != GOOD
    # A permission that is no mapping has no values to look at; the first rule is the one that counts then.
    if new.strip() == "permissions: write-all":
        broken = broken.replace("  pull_request:", "  push:")
    assert any(fault in found for found in faults(broken)), faults(broken)


def test_linters_have_nothing_to_say() -> None:
    """actionlint (with shellcheck), zizmor in its pedantic persona, the schemas, shellcheck on the scripts."""
    done = subprocess.run(
        [ROOT / ".github" / "scripts" / "lint_workflows.sh"],
        env={"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/root")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_action_has_one_version_everywhere() -> None:
    versions: dict[str, set[str]] = {}
    for path in FILES:
        for action, version in re.findall(r"uses: ([\w-]+/[\w-]+)(?:/[\w/-]+)?@([0-9a-f]{40} # \S+)", path.read_text()):
            versions.setdefault(action, set()).add(version)
    assert {action: found for action, found in versions.items() if len(found) > 1} == {}


def test_a_newer_run_of_a_pull_request_ends_the_older_one_and_nothing_ends_a_release() -> None:
    assert document("pull-request")["concurrency"]["cancel-in-progress"] is True
    assert "pull_request.number" in document("pull-request")["concurrency"]["group"]
    assert document("release")["concurrency"] == {"group": "release", "cancel-in-progress": False}
    assert document("build-models")["concurrency"]["cancel-in-progress"] is False


def test_only_the_publishing_job_of_a_release_may_write_and_it_waits_for_the_environment() -> None:
    jobs = document("release")["jobs"]
    assert set(jobs["rehearse"]["permissions"].values()) == {"read"}
    assert jobs["publish"]["environment"] == "release"
    assert jobs["publish"]["needs"] == "rehearse"


def test_what_the_fuzzing_keeps_is_what_its_failure_uploads() -> None:
    steps = document("fuzz")["jobs"]["fuzz"]["steps"]
    [run] = [step["run"] for step in steps if step.get("run", "").startswith("make fuzz ")]
    given = {part for part in run.split() if "=" in part}
    assert 'SEED="$GITHUB_RUN_ID"' in given  # other inputs every week
    [upload] = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert upload["if"] == "${{ failure() }}"
    # Under `make test` a make would say which folder it enters and leaves, too.
    command = ["make", "--no-print-directory", "--dry-run", "--always-make", "fuzz", *given]
    dry = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    line = dry.stdout.splitlines()[-1]
    assert re.fullmatch(r"\S+/python -m tests\.fuzz 1000000 --seed .* --minutes 60 --keep dist/fuzz", line), line
    assert upload["with"]["path"] == "dist/fuzz"
    assert document("fuzz")["jobs"]["fuzz"]["timeout-minutes"] > 60


def test_the_comment_is_the_only_thing_that_may_write_to_a_pull_request() -> None:
    writers = {
        name
        for name in NAMES
        for job in document(name)["jobs"].values()
        if job["permissions"].get("pull-requests") == "write"
    }
    assert writers == {"comment"}


def test_the_comment_follows_the_workflow_of_pull_requests() -> None:
    assert document("comment")[True]["workflow_run"]["workflows"] == [document("pull-request")["name"]]


def test_jobs_that_run_models_code_have_no_secret_and_only_read() -> None:
    for name, job in document("build-models")["jobs"].items():
        assert set(job["permissions"].values()) == {"read"}, name
        assert "secrets" not in str(job), name


def test_the_configuration_of_zizmor_silences_one_rule() -> None:
    assert list(yaml.safe_load((ROOT / ".github" / "zizmor.yml").read_text())["rules"]) == ["self-repository"]
    ignored = [line for path in FILES for line in path.read_text().splitlines() if "zizmor: ignore" in line]
    assert all(re.search(r"ignore\[[a-z-]+\] \w+", line) for line in ignored), "each with its reason"
