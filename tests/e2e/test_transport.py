"""Prepare on one machine, compile on another: what the CI's jobs do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.e2e.conftest import Workshop


def stages(shop: Workshop) -> dict[str, int]:
    found = shop.forge("store", "info", "--json").document["stages"]
    return {stage: facts["entries"] for stage, facts in found.items() if facts["entries"]}


def test_prepared_once_and_compiled_elsewhere(workshop: Workshop, tmp_path: Path) -> None:
    assert workshop.forge("prepare", "toy", "--json").document == {"schema": 1, "variants": ["toy-1.0-s16-fp16"]}
    made = stages(workshop)
    assert {stage: made[stage] for stage in ("source", "prepare", "samples", "reference", "range")} == {
        "source": 1, "prepare": 1, "samples": 1, "reference": 1, "range": 1,
    }  # fmt: skip
    assert "compile" not in made
    exported = workshop.forge("store", "export", "toy.tar", "--model", "toy", "--json")
    assert exported.code == 0, exported.err
    assert [entry["stage"] for entry in exported.document["entries"]].count("prepare") == 1

    there = Workshop(tmp_path / "there")
    shutil.copytree(workshop.model, there.model)
    shutil.copy(workshop.root / "toy.tar", there.root)
    imported = there.forge("store", "import", "toy.tar")
    assert imported.code == 0, imported.err
    run = there.build("--soc", "SM8650")
    assert run.code == 0, run.err
    left = {log.name.partition("-")[0] for log in (there.store / "logs").iterdir()}
    assert "compile" in left
    assert not left & {"prepare", "range"}  # nothing was prepared again

    finished = there.forge("store", "export", "all.tar", "--model", "toy", "--soc", "SM8650", "--json")
    assert {entry["stage"] for entry in finished.document["entries"]} >= {"compile", "measure", "bundle"}
    shutil.copy(there.root / "all.tar", workshop.root)
    assert workshop.forge("store", "import", "all.tar").code == 0
    assert workshop.build("--soc", "SM8650").document["targets"][0]["reused"] is True
    ours = json.loads((workshop.dist / "toy-1.0-s16-fp16-SM8650-qairt2.51.0" / "manifest.json").read_text())
    theirs = json.loads((there.dist / "toy-1.0-s16-fp16-SM8650-qairt2.51.0" / "manifest.json").read_text())
    assert ours == theirs


def test_export_of_what_is_not_there_is_empty(workshop: Workshop) -> None:
    run = workshop.forge("store", "export", "toy.tar", "--model", "toy", "--json")
    assert (run.code, run.document["entries"]) == (0, [])
    run = workshop.forge("store", "export", "toy.tar", "--model", "nobody")
    assert run.code == 3
