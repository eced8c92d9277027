"""Fixtures for all tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

# No timed assertions: a busy machine is no fault of the code. A run depends on the commit alone, so property tests
# take the same examples each time; HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A tmpfs on `folder`; the test is skipped where this user may not mount."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"needs the right to mount a tmpfs (run the tests as root): {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for 256 KiB."""
    with mounted(tmp_path / "small", "size=256k") as folder:
        yield folder


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that cannot be written to."""
    with mounted(tmp_path / "read-only", "ro,size=64k") as folder:
        yield folder
