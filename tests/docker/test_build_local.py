"""docker/build-local.sh without building: it is clean, and it says what it lacks before it starts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.parse import DOCKER

SCRIPT = DOCKER / "build-local.sh"


def test_shellcheck_finds_nothing() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([str(shellcheck), str(SCRIPT)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with hardly anything on it, where the user is root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("dirname", "mkdir", "tail", "env"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    program(folder, "id", "echo 0")
    return folder


def program(folder: Path, name: str, does: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{does}\n")
    (folder / name).chmod(0o755)


def stopped(programs: Path, folder: Path) -> str:
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, str(SCRIPT), str(folder)], env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_only_root_can(programs: Path, tmp_path: Path) -> None:
    program(programs, "id", "echo 1000")
    assert stopped(programs, tmp_path / "work").startswith("build-local: needs root")


def test_a_missing_program_is_named(programs: Path, tmp_path: Path) -> None:
    program(programs, "buildah", "exit 1")
    message = stopped(programs, tmp_path / "work")
    assert message == "build-local: mmdebstrap is missing: apt-get install --no-install-recommends mmdebstrap\n"


def test_a_small_disk_is_named_before_it_is_filled(programs: Path, tmp_path: Path) -> None:
    for name in ("buildah", "mmdebstrap", "python3"):
        program(programs, name, "exit 1")
    program(programs, "df", "echo Avail; echo 4000000")
    message = stopped(programs, tmp_path / "work")
    assert message == f"build-local: {tmp_path / 'work'} has 4000000 kB free; 6000000 are needed\n"
    assert list((tmp_path / "work").iterdir()) == []
