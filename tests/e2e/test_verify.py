"""qnn-forge verify, and that what a bundle's README says is what happens."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.conftest import Workshop

NAME = "toy-1.0-s16-fp16-SM8650-qairt2.51.0"
OTHER = "toy-1.0-s16-fp16-SM8750-qairt2.51.0"


@pytest.fixture
def built(workshop: Workshop) -> Workshop:
    """The toy, built for two chips, without the store and the model it came from."""
    assert workshop.build("--soc", "SM8650,SM8750").code == 0
    shutil.rmtree(workshop.store)
    shutil.rmtree(workshop.root / "models")
    return workshop


def test_folder_and_archive_verify_from_nothing_but_themselves(built: Workshop, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(built.dist / NAME, elsewhere / "renamed")
    run = built.forge("verify", str(elsewhere / "renamed"), f"dist/{OTHER}.tar.gz", "--json")
    assert run.code == 0, run.err
    verdicts = [(bundle["name"], bundle["verdict"]) for bundle in run.document["bundles"]]
    assert verdicts == [(NAME, "ok"), (OTHER, "ok")]
    assert run.document["bundles"][0]["graphs"][0]["outputs"][0]["cosine"] > 0.999


def rehash(folder: Path) -> None:
    """Make a manifest that fits the files, as a careful forger would."""
    import hashlib  # noqa: PLC0415

    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for file in manifest["files"]:
        data = (folder / file["path"]).read_bytes()
        file["sha256"], file["size"] = hashlib.sha256(data).hexdigest(), len(data)
    path.write_text(json.dumps(manifest))


def flip(folder: Path) -> None:
    data = bytearray((folder / "net.bin").read_bytes())
    data[-1] ^= 1
    (folder / "net.bin").write_bytes(data)


def another_chip(folder: Path) -> None:
    shutil.copy(folder.parent / OTHER / "net.bin", folder / "net.bin")
    rehash(folder)


def other_numbers(folder: Path) -> None:
    golden = folder / "golden/net/sample_000/y.raw"
    (np.fromfile(golden, np.float32) * 1.5).astype(np.float32).tofile(golden)
    rehash(folder)


def short_golden(folder: Path) -> None:
    golden = folder / "golden/net/sample_000/x.raw"
    golden.write_bytes(golden.read_bytes()[:-4])
    rehash(folder)


@pytest.mark.parametrize(
    ("harm", "code", "says"),
    [
        (flip, 9, "net.bin: its sha256 is not the manifest's"),
        (lambda folder: (folder / "LICENSE.txt").write_text("mine"), 9, "LICENSE.txt: not listed"),
        (lambda folder: (folder / "README.txt").unlink(), 9, "README.txt: missing"),
        (lambda folder: (folder / "manifest.json").unlink(), 9, "QF701"),
        (another_chip, 8, "soc_model: planned 57 (SM8650), found 69"),
        (other_numbers, 8, "output y differs from the float model"),
        (short_golden, 8, "QF625"),
    ],
)
def test_a_changed_bundle_is_refused(built: Workshop, harm: Callable[[Path], object], code: int, says: str) -> None:
    harm(built.dist / NAME)
    run = built.forge("verify", f"dist/{NAME}")
    assert (run.code, says in run.err) == (code, True), run.err
    assert "Traceback" not in run.err


def test_all_are_checked_when_the_first_fails(built: Workshop) -> None:
    flip(built.dist / NAME)
    run = built.forge("verify", f"dist/{NAME}", f"dist/{OTHER}", "--json")
    assert run.code == 9
    assert [bundle["verdict"] for bundle in run.document["bundles"]] == ["failed", "ok"]


def test_a_bundle_that_was_not_verified_can_be(workshop: Workshop) -> None:
    assert workshop.build("--soc", "SM8550,QCS8550", "--verify", "per-arch").code == 0
    name = NAME.replace("SM8650", "SM8550")
    assert json.loads((workshop.dist / name / "manifest.json").read_text())["verified"] is False
    run = workshop.forge("verify", f"dist/{name}")
    assert run.code == 0, run.err


def test_the_readme_s_onnxruntime_lines_work(built: Workshop) -> None:
    readme = (built.dist / NAME / "README.txt").read_text()
    found = re.search(r"  python - <<'END'\n(.*?)\n  END", readme, re.DOTALL)
    assert found
    done = subprocess.run(
        [sys.executable, "-"],
        input=textwrap.dedent(found[1]),
        cwd=built.dist / NAME,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "{'y': (1, 8, 1, 1)}"


def test_input_list_names_every_golden_input(built: Workshop) -> None:
    folder = built.dist / NAME
    assert (folder / "golden/net/input_list.txt").read_text() == "x:=golden/net/sample_000/x.raw\n"
    assert (folder / "golden/net/sample_000/x.raw").stat().st_size == 4 * 3 * 16 * 16
