"""What the pages say of the workflows is what the workflows say."""

from __future__ import annotations

import re

import yaml

from tests.workflows.checks import faults
from tests.workflows.conftest import ROOT, WORKFLOWS, document

PAGE = (ROOT / "docs" / "reusable-workflow.md").read_text()


def test_every_input_of_the_reusable_workflow_has_its_row() -> None:
    inputs = document("build-models")[True]["workflow_call"]["inputs"]
    table = PAGE[PAGE.index("| input |") :]
    rows = [row.split("|") for row in table.split("\n\n")[0].splitlines()[2:]]
    defaults: dict[str, str] = {}
    for row in rows:
        names, values = (re.findall(r"`([^`]+)`", cell) for cell in row[1:3])
        defaults |= dict(zip(names, values or [""] * len(names), strict=True))
    said = {"models": "", "socs": "", "precisions": ""}
    expected = {name: str(given["default"]).lower() for name, given in inputs.items()}
    assert {**defaults, **said} == expected


def test_the_example_of_a_caller_keeps_our_rules() -> None:
    example = PAGE[PAGE.index("```yaml") + 8 :].split("```")[0]
    pinned = re.sub(r"@COMMIT # .*", "@" + "0" * 40 + " # v1.0.0", example)
    assert faults(pinned) == []
    call = yaml.safe_load(pinned)["jobs"]["models"]
    known = document("build-models")[True]["workflow_call"]["inputs"]
    assert set(call["with"]) <= set(known)
    needed = [job["permissions"] for job in document("build-models")["jobs"].values()]
    assert call["permissions"] == {key: value for permissions in needed for key, value in permissions.items()}


def test_pages_pin_actions_as_the_workflows_do() -> None:
    workflows = "".join(path.read_text() for path in WORKFLOWS.glob("*.yaml"))
    for pin in re.findall(r"actions/[\w-]+@[0-9a-f]{40} # v\S+", PAGE):
        assert pin in workflows


def test_each_workflow_has_its_row() -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    assert set(re.findall(r"^\| `([\w-]+\.yaml)`", page, re.M)) == {path.name for path in WORKFLOWS.iterdir()}
