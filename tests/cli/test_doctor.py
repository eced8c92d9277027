"""qnn-forge doctor, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qnn.cli import run
from qnn.cli.doctor import report
from qnn.doctor.document import document
from qnn.doctor.facts import Facts, Failed, Kit, NotTried, Worked
from qnn.doctor.judge import judge
from tests.doctor.fake_facts import BUILD, GB, machine, sound, toolchain


def doctor(home: Path, *arguments: str, python_path: Sequence[str] = ()) -> tuple[int, Any]:
    """Run the command in a process of its own, with `home` for everything it might leave; exit code and document."""
    path = [*python_path, *(entry for entry in sys.path if entry)]
    done = subprocess.run(
        [sys.executable, "-m", "qnn.cli", "doctor", "--json", *arguments],
        env=_environment(home, path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def _environment(home: Path, python_path: Sequence[str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    return {**kept, "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": os.pathsep.join(python_path)}


def test_a_real_trial_on_this_machine(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, "--store", str(tmp_path / "store"))
    assert code == 0
    assert found["ok"] is True
    assert found["trial"]["result"] == "worked"
    assert found["trial"]["build_id"] == found["toolchain"]["known_build"] == BUILD
    assert 0 < found["trial"]["worst"] < 0.002  # fp16 rounds, so it really ran there
    assert all(library["fault"] is None and library["size"] > 10**6 for library in found["toolchain"]["libraries"])
    assert found["findings"] == []
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_wheel_is_named_and_what_it_stops(tmp_path: Path) -> None:
    package = tmp_path / "onnxruntime_qnn"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "libQnnHtp.so").write_bytes(b"\x7fELF")
    code, found = doctor(tmp_path, "--store", str(tmp_path / "store"), python_path=[str(tmp_path)])
    assert code == 11
    faults = {finding["id"]: finding for finding in found["findings"]}
    assert set(faults) == {"QF934", "QF935"}
    messages = [finding["message"] for finding in found["findings"]]
    assert messages[:2] == [
        "libHtpPrepare.so is missing from the wheel",
        "libQnnHtp.so does not load: file too short",
    ]
    assert found["toolchain"]["qairt"] is None
    assert {work for work, ability in found["abilities"].items() if ability["possible"]} == {"lint", "pin"}


def test_a_store_that_cannot_be_written_to(read_only_disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--store", str(read_only_disk)]) == 11
    lines = capsys.readouterr().out.splitlines()
    assert "build         no: QF902" in lines
    assert "verify        yes" in lines
    assert f"error: QF902 the store {read_only_disk} cannot be written to: Read-only file system" in lines


def test_the_report_of_a_poor_machine() -> None:
    facts = replace(
        sound(),
        machine=replace(machine(), memory_total=2 * GB, memory_available=GB, memory_limited=True, cores=2),
        toolchain=replace(toolchain(), onnxruntime=None, libraries=toolchain().libraries[:1]),
        trial=NotTried("the toolchain is not installed"),
        kits=(Kit("QAIRT SDK", "QAIRT_SDK_ROOT", "/opt/qairt", "bin/tool"),),
    )
    assert "\n".join(report(facts, judge(facts))) == (
        """\
qnn-forge     0.1.0
machine       Linux x86_64, glibc 2.36, Python 3.11.9, 2 cores
memory        1.0 GB free of 2.0 GB, a container's limit
toolchain     pip, QAIRT 2.51.0 (v2.51.0.260929181845)
packages      onnxruntime missing, onnxruntime-qnn 2.7.0: not a tested pair
libraries     libHtpPrepare.so: 5.0 MB, loads
trial         not tried: the toolchain is not installed
QAIRT SDK     /opt/qairt: bin/tool is missing
store         /home/me/.cache/qnn-forge: writable, 50.0 GB free

build         no: QF932
verify        no: QF932
inspect       yes
lint          yes
pin           yes

error: QF932 not installed: onnxruntime
  remedy: pip install -c constraints.txt onnxruntime
  more: qnn-forge explain QF932

warning: QF937 1.0 GB of memory free within the container's limit
  remedy: end other programs, raise the limit, or build small models with --jobs 1
  more: qnn-forge explain QF937

warning: QF939 QAIRT_SDK_ROOT=/opt/qairt holds no bin/tool
  remedy: set QAIRT_SDK_ROOT to the folder that holds it, or unset it
  more: qnn-forge explain QF939"""
    )


@pytest.mark.parametrize(
    "facts",
    [
        sound(),
        replace(sound(), trial=Failed("compiled", "x", ("y",))),
        replace(sound(), trial=NotTried("x")),
        replace(sound(), trial=Worked(BUILD, None, float("nan"), 1.0)),
    ],
)
def test_the_document_has_the_same_keys_whatever_was_found_and_is_valid_json(facts: Facts) -> None:
    found = document(facts, judge(facts))
    assert set(found) == {
        "schema", "ok", "version", "machine", "toolchain", "store", "trial", "kits", "abilities", "findings",
    }  # fmt: skip
    json.dumps(found, allow_nan=False)
