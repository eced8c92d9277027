"""`qnn-forge report` as a command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from qnn.report.comment import MARKER
from tests.e2e.conftest import environment
from tests.report.documents import COMMIT, RUN, build, failed, job, lint, plan, problem, target, write


def report(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the command in the folder."""
    command = [sys.executable, "-m", "qnn.cli", "report", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(folder) | (env or {}), capture_output=True, check=False)


def test_all_forms_of_a_run(tmp_path: Path) -> None:
    write(tmp_path, "a.json", build(target("SM8550"), failed("SM8650")))
    write(tmp_path, "lint.json", lint(problem("hint")))
    write(tmp_path, "plan.json", plan(job("SM8550,SM8650,SM8750")))
    options = ["--plan=plan.json", "--lint=lint.json", f"--run-url={RUN}", f"--commit={COMMIT}", "--", "a.json"]
    summary = report(tmp_path, *options)
    assert (summary.returncode, summary.stderr) == (0, b"")
    assert summary.stdout.decode().startswith("## ❌ 1 of 3 bundles failed, 1 missing\n")
    comment = report(tmp_path, "--format=comment", *options)
    assert comment.stdout.decode().startswith(f"{MARKER}\n### ❌ 1 of 3 bundles failed, 1 missing\n")
    assert f"/commit/{COMMIT}" in comment.stdout.decode()
    document = json.loads(report(tmp_path, "--format=json", *options).stdout)
    assert (document["kind"], document["schema"], document["commit"]) == ("qnn-forge-report", 1, COMMIT)
    assert document["tally"] == {"failed": 1, "missing": 1, "ok": 1, "reused": 0, "unverified": 0}


def test_a_report_shown_again_is_the_same(tmp_path: Path) -> None:
    write(tmp_path, "a.json", build(target("SM8550"), failed("SM8650", model="x\ud800`|@y")))
    first = report(tmp_path, "--format=comment", f"--run-url={RUN}", "a.json").stdout
    (tmp_path / "report.json").write_bytes(report(tmp_path, "--format=json", f"--run-url={RUN}", "a.json").stdout)
    assert report(tmp_path, "--format=comment", "report.json").stdout == first


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path, "a.json", build(target(model="日本語")))
    plain = report(tmp_path, "a.json", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert plain.returncode == 0
    assert "日本語" in plain.stdout.decode()


def test_no_files_and_broken_files_still_report(tmp_path: Path) -> None:
    assert report(tmp_path).stdout.decode() == "## Nothing to build\n"
    (tmp_path / "cut.json").write_text('{"schema": 1, "targ')
    broken = report(tmp_path, "cut.json")
    assert broken.returncode == 0
    assert "## ⛔ 1 document of the run could not be read\n" in broken.stdout.decode()
    assert "- cut.json: not JSON" in broken.stdout.decode().replace("<span>&#58;</span>", ":")


def test_a_damaged_report_has_its_id_and_exit_code(tmp_path: Path) -> None:
    write(tmp_path, "report.json", {"kind": "qnn-forge-report", "schema": 7})
    refused = report(tmp_path, "report.json")
    assert refused.returncode == 11
    assert b"error: QF920 report.json: its schema version is not 1" in refused.stderr
    assert refused.stdout == b""
