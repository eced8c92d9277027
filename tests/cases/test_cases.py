"""100 small graphs that break naive toolkits, built by the public command: right, rewritten, or refused by name.

The graphs were made after public reports; cases.csv says what must become of each, docs/cases.md tells it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.folders import TABLE, Case, read_cases, write_folder
from tests.cases.page import cases_page
from tests.e2e.conftest import Workshop

CASES = read_cases()
# Refused while model.yaml is read, so that nothing else would be built beside it.
ALONE = "k2-empty-cache"
_AT_ONCE = 25
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What `qnn-forge build` says of each model, with the manifest of what was built."""
    shop = Workshop(tmp_path_factory.mktemp("cases"))
    folders = [write_folder(case.name, shop.root / "models") for case in CASES]
    targets: dict[str, dict[str, Any]] = {}
    for start in range(0, len(folders), _AT_ONCE):
        named = [str(folder) for folder in folders[start : start + _AT_ONCE] if folder.name != ALONE]
        run = shop.forge("build", *named, "--soc", "SM8650", "--keep-going", "--json")
        targets |= {target["model"]: target for target in run.document["targets"]}
    for target in targets.values():
        folder = target["folder"]
        text = "" if folder is None else (shop.root / folder / "manifest.json").read_text()
        target["manifest"] = json.loads(text) if text else None
    alone = shop.forge("build", str(shop.root / "models" / ALONE), "--soc", "SM8650")
    assert alone.code == 3
    targets[ALONE] = {"error": {"id": alone.err.split()[2], "message": alone.err, "details": []}}
    return targets


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_outcome(case: Case, built: dict[str, dict[str, Any]]) -> None:
    found = built[case.model]
    if case.outcome == "refused":
        error = found["error"]
        assert error is not None, "built, and should be refused"
        assert error["id"] == case.how
        said = "\n".join((error["message"], *error["details"]))
        assert [word for word in case.words if word not in said] == []
        return
    assert found["error"] is None, found["error"]
    assert found["verdict"] == "ok"
    (graph,) = found["manifest"]["graphs"]
    applied = {change.split(": ")[2] for change in graph["rewrites"] if change.startswith("rewritten: ")}
    assert applied == (set(case.how.split()) if case.outcome == "rewritten" else set())
    assert found["manifest"]["verified"]


def test_every_case_is_here() -> None:
    assert len(CASES) == 100
    assert sorted(case.name for case in CASES) == [case.name for case in CASES]
    assert {case.name for case in CASES} == {path.stem for path in (TABLE.parent / "data").glob("*.onnx")}


def test_page() -> None:
    written = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
    assert written == cases_page(CASES), "run: python -m tests.cases.page > docs/cases.md"
