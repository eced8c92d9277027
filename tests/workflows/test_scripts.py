"""The scripts of .github/scripts by themselves."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workflows.conftest import ROOT

SCRIPTS = ROOT / ".github" / "scripts"
DIGEST = "ghcr.io/acme/forge@sha256:" + "0" * 64


def load(name: str) -> ModuleType:
    """A script as a module of its own name; the scripts import each other as neighbours."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        spec = importlib.util.spec_from_file_location(f"github_script_{name}", SCRIPTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPTS))
    return module


PLAN = load("plan")
COLLECT = load("collect")


def part(*counts: int, dry_run: bool = False) -> dict[str, Any]:
    """A part of a plan: one matrix for each count, each job of a variant of its own, two jobs to a variant."""
    compile_ = [
        {"include": [{"id": f"c{m}.{j}", "prepare_id": f"p{m}.{j // 2}"} for j in range(count)]}
        for m, count in enumerate(counts)
    ]
    ids = sorted({job["prepare_id"] for matrix in compile_ for job in matrix["include"]})
    return {"dry_run": dry_run, "compile": compile_, "prepare": {"include": [{"id": name} for name in ids]}}


@given(st.lists(st.lists(st.integers(0, 40), max_size=4), min_size=1, max_size=3), st.integers(1, 30))
def test_shares_hold_every_job_once_and_are_never_too_large(counts: list[list[int]], jobs: int) -> None:
    parts = [part(*matrices) for matrices in counts]
    cut = PLAN.shares(parts, jobs)
    assert all(0 < len(share) <= jobs for share in cut)
    every = [job for piece in parts for matrix in piece["compile"] for job in matrix["include"]]
    assert [job for share in cut for job in share] == every


def test_a_share_prepares_what_it_compiles_and_nothing_else() -> None:
    outputs = PLAN.share([part(5)], 1, 2)
    assert [job["id"] for job in outputs["compile"]["include"]] == ["c0.2", "c0.3"]
    assert [job["id"] for job in outputs["prepare"]["include"]] == ["p0.1"]
    assert outputs["shards"] == [0, 1, 2]
    assert outputs["empty"] is False


def test_nothing_is_built_of_an_empty_plan_a_dry_run_or_a_share_beyond_the_last() -> None:
    assert PLAN.share([part()], 0, 256)["empty"] is True
    dry = PLAN.share([part(3, dry_run=True)], 0, 256)
    assert (dry["empty"], dry["prepare"], dry["compile"]) == (True, {"include": []}, {"include": []})
    assert PLAN.share([part(3)], 1, 256)["empty"] is True


def test_a_long_plan_is_cut_in_its_middle() -> None:
    assert PLAN.shortened("    row\n") == "    row\n"
    cut = PLAN.shortened("    first\n" + "    row é\n" * 200_000 + "    cost\n")
    assert len(cut.encode()) < 1_000_100
    assert cut.startswith("    first\n")
    assert cut.endswith("    cost\n")
    assert "all rows" in cut


def test_values_that_look_like_options_stay_values() -> None:
    text = json.dumps({"models": "--help -x", "socs": "--json,SM8650", "changed-from": "--output=x", "labels": '["a"]'})
    command = PLAN.arguments(PLAN.request(text))
    assert command == [
        "--soc=--json", "--soc=SM8650", "--changed-from=--output=x", '--labels=["a"]', "--models-dir=models",
        "--", "--help", "-x",
    ]  # fmt: skip


def test_a_scheduled_run_has_no_inputs() -> None:
    asked = PLAN.request("{}")
    assert (asked.models, asked.models_dir, asked.shard, asked.shard_jobs) == ((), "models", None, 256)
    assert PLAN.request('{"shard": null, "shard-jobs": 9999}').shard_jobs == 256


@pytest.mark.parametrize("image", ["ghcr.io/acme/forge:latest", f"-{DIGEST}", f"{DIGEST}\nx", "sha256:" + "0" * 64])
def test_an_image_is_named_by_digest(image: str) -> None:
    assert PLAN.request(json.dumps({"image": DIGEST})).image == DIGEST
    with pytest.raises(SystemExit, match="by digest"):
        PLAN.request(json.dumps({"image": image}))


def test_bundles_that_were_not_verified_are_not_handed_over() -> None:
    good = {"targets": [{"name": "a", "verdict": "ok"}]}
    assert COLLECT.refusals([good]) == []
    assert COLLECT.refusals([good, {"targets": [{"name": "b", "verdict": "unverified"}]}]) == ["b is unverified"]
    assert COLLECT.refusals([{"targets": []}]) == ["nothing was built"]


def shell(script: str, folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script in `folder` with its files for GitHub there."""
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH", "GITHUB_ENV")}
    return subprocess.run(
        [str(SCRIPTS / script), *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **files, "RUNNER_TEMP": str(folder), "GITHUB_WORKSPACE": str(folder), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_retry_tries_three_times_and_then_fails_with_the_commands_code(tmp_path: Path) -> None:
    command = f"echo x >> {tmp_path}/tries; exit 7"
    done = shell("retry.sh", tmp_path, "bash", "-c", command, RETRY_WAIT="0")
    assert done.returncode == 7
    assert (tmp_path / "tries").read_text().count("x") == 3


def test_retry_stops_at_the_first_success(tmp_path: Path) -> None:
    command = f"echo x >> {tmp_path}/tries; test $(wc -l < {tmp_path}/tries) = 2"
    assert shell("retry.sh", tmp_path, "bash", "-c", command, RETRY_WAIT="0").returncode == 0
    assert (tmp_path / "tries").read_text().count("x") == 2


@pytest.mark.parametrize("toolchain", ["pip:2.7.0; id", "pip:$(id)", "sdk", "pip:", "pip:new est"])
def test_setup_knows_its_toolchains(tmp_path: Path, toolchain: str) -> None:
    done = shell("setup.sh", tmp_path, TOOLCHAIN=toolchain, QNN_FORGE_PYTHON=sys.executable)
    assert done.returncode == 2
    assert done.stdout == "::error title=Unknown toolchain::write pip, pip:newest or pip:VERSION\n"


def test_setup_puts_this_checkout_on_the_path(tmp_path: Path) -> None:
    done = shell("setup.sh", tmp_path, QNN_FORGE_PYTHON=sys.executable)
    assert done.stdout.startswith("qnn-forge, version ")
    assert (tmp_path / "GITHUB_PATH").read_text() == f"{tmp_path}/qnn-forge-bin\n"
    assert (tmp_path / "GITHUB_ENV").read_text() == f"QNN_FORGE_STORE={tmp_path}/qnn-forge-work/store\n"
    assert f"PYTHONPATH='{ROOT}/scripts'" in (tmp_path / "qnn-forge-bin" / "qnn-forge").read_text()


def test_setup_uses_the_python_of_an_image_and_installs_nothing(tmp_path: Path) -> None:
    done = shell("setup.sh", tmp_path, IMAGE=DIGEST, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert done.returncode == 0
    assert not (tmp_path / "qnn-forge-venv").exists()


@pytest.fixture
def forge(tmp_path: Path) -> str:
    """PATH with a qnn-forge that says what it was asked."""
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "qnn-forge"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    fake.chmod(0o755)
    return f"{tmp_path}/bin:{os.environ['PATH']}"


def test_the_cache_key_is_made_of_the_digests_in_the_store(tmp_path: Path, forge: str) -> None:
    def outputs(restored: str = "") -> dict[str, str]:
        (tmp_path / "GITHUB_OUTPUT").unlink(missing_ok=True)
        done = shell(
            "keep.sh", tmp_path, PATH=forge, CACHE_ID="toy.s16", RESTORED=restored, QNN_FORGE_STORE=str(tmp_path / "s")
        )
        assert done.returncode == 0, done.stderr
        return dict(line.split("=", 1) for line in (tmp_path / "GITHUB_OUTPUT").read_text().splitlines())

    assert outputs()["save"] == "false"
    (tmp_path / "s" / "objects" / "ab" / "ab12").mkdir(parents=True)
    first = outputs()
    assert first["key"].startswith("qnn-forge-store-1-toy.s16-")
    assert first["save"] == "true"
    assert outputs(restored=first["key"])["save"] == "false"
    (tmp_path / "s" / "objects" / "cd" / "cd34").mkdir(parents=True)
    second = outputs(restored=first["key"])
    assert second["save"] == "true"
    assert second["key"] != first["key"]
    assert (tmp_path / "asked").read_text().splitlines()[0] == "store prune --max-size 1G"


def test_names_of_an_image(tmp_path: Path) -> None:
    env = {
        "GITHUB_REPOSITORY": "Acme/Forge",
        "GITHUB_SHA": "abc",
        "GITHUB_SERVER_URL": "https://example",
        "TARGET": "pip",
    }
    assert shell("image.sh", tmp_path, **env, BASE=f"python@sha256:{'1' * 64}").returncode == 0
    text = (tmp_path / "GITHUB_OUTPUT").read_text()
    assert "ghcr.io/acme/forge:pip-latest\nEND\n" in text
    assert "REVISION=abc\nSOURCE=https://example/Acme/Forge\nBASE=python@sha256:1" in text
    assert shell("image.sh", tmp_path, **env, DIGEST="sha256:00").returncode == 0
    assert "    ghcr.io/acme/forge@sha256:00\n" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text()


GH = """\
#!{python}
import json, pathlib, sys
root = pathlib.Path({root!r})
with (root / "gh.jsonl").open("a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:3] == ["issue", "list"]:
    print((root / "open.json").read_text())
"""


def track(folder: Path, needs: str, opened: list[int]) -> list[list[str]]:
    """Run tracking_issue.py with a gh that knows these open issues; returns what gh was asked."""
    (folder / "bin").mkdir()
    gh = folder / "bin" / "gh"
    gh.write_text(GH.format(python=sys.executable, root=str(folder)))
    gh.chmod(0o755)
    (folder / "open.json").write_text(json.dumps([{"number": number} for number in opened]))
    subprocess.run(
        [sys.executable, SCRIPTS / "tracking_issue.py"],
        cwd=folder,
        env={"PATH": f"{folder}/bin:{os.environ['PATH']}", "NEEDS": needs, "RUN_URL": "https://example/run"},
        check=True,
    )
    return [json.loads(line) for line in (folder / "gh.jsonl").read_text().splitlines()]


def test_a_failure_opens_the_tracking_issue(tmp_path: Path) -> None:
    calls = track(tmp_path, "failure skipped", [])
    assert [call[:2] for call in calls] == [["issue", "list"], ["label", "create"], ["issue", "create"]]
    assert (tmp_path / "qnn-forge-work" / "issue.md").read_text() == (
        "The run failed before anything was built: https://example/run\n"
    )


def test_the_next_failure_edits_it_and_success_closes_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    assert track(tmp_path / "a", "success failure", [12])[1][:3] == ["issue", "edit", "12"]
    assert track(tmp_path / "b", "success success", [12])[1][:3] == ["issue", "close", "12"]
    assert [call[:2] for call in track(tmp_path / "c", "success success", [])] == [["issue", "list"]]
