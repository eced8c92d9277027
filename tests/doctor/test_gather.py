"""Gathering: what is really looked at, and that a broken part is a fact, never an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from qnn.child import Host
from qnn.chips.table import load_table
from qnn.doctor import gather
from qnn.doctor.facts import Failed, Kit, Library, NotTried, Toolchain
from qnn.doctor.jobs import load_library
from qnn.doctor.judge import TRIAL_SOC_ID
from tests.docker.fake_sdk import GENERATOR
from tests.doctor.fake_facts import toolchain


@pytest.fixture
def host() -> Iterator[Host]:
    opened = Host(preload=())
    yield opened
    opened.close()


def test_a_store_that_does_not_exist_yet_is_judged_by_its_nearest_folder(tmp_path: Path) -> None:
    found = gather.store_place(tmp_path / "a" / "b")
    assert (found.path, found.exists, found.fault) == (str(tmp_path / "a" / "b"), False, None)
    assert found.free > 0
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_store(read_only_disk: Path) -> None:
    found = gather.store_place(read_only_disk)
    assert found.fault == "Read-only file system"
    assert found.exists


def test_a_store_on_a_small_disk(small_disk: Path) -> None:
    assert gather.store_place(small_disk).free <= 256 * 1024


def test_a_file_where_the_store_should_be(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    assert gather.store_place(tmp_path / "store").fault == "Not a directory"


def test_a_file_that_is_no_library_says_why(tmp_path: Path) -> None:
    path = tmp_path / "libQnnHtp.so"
    path.write_text("cut short")
    assert load_library(str(path)) == "file too short"


def test_libraries_are_loaded_in_children_and_a_crash_is_a_fact(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "LOAD_JOB", "tests.doctor.fake_jobs:abort")
    monkeypatch.setattr(gather, "VERSION_JOB", "tests.doctor.fake_jobs:abort")
    found = gather.toolchain(host, tmp_path)
    assert found.qairt is None
    assert [library.name for library in found.libraries] == sorted(gather.LIBRARIES)
    assert all(library.fault == "abort failed: killed by SIGABRT" for library in found.libraries)


def test_a_missing_library(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "LIBRARIES", ("libNowhere.so",))
    assert gather.toolchain(host, tmp_path).libraries == (Library("libNowhere.so", None, "missing"),)


def test_a_crash_of_the_compiler_is_a_failed_trial(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "COMPILE_JOB", "tests.doctor.fake_jobs:abort")
    found = gather.trial(toolchain(), host, tmp_path)
    assert isinstance(found, Failed)
    assert found.step == "compiled"
    assert found.message == "abort failed: killed by SIGABRT"
    assert found.details == ("| terminate called without an active exception",)


def test_a_crash_of_the_emulator_names_the_step(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "RUN_JOB", "tests.doctor.fake_jobs:abort")
    found = gather.trial(toolchain(), host, tmp_path)
    assert isinstance(found, Failed)
    assert found.step == "run on the emulator"


def test_nothing_is_tried_without_a_toolchain(host: Host, tmp_path: Path) -> None:
    assert gather.trial(Toolchain(None, None, None, ()), host, tmp_path) == NotTried("the toolchain is not installed")


def test_kits_that_the_environment_names(tmp_path: Path) -> None:
    (tmp_path / GENERATOR).parent.mkdir(parents=True)
    (tmp_path / GENERATOR).write_text("")
    found = gather.kits({"QAIRT_SDK_ROOT": str(tmp_path), "ANDROID_NDK_ROOT": "/nowhere", "HOME": "/"})
    assert found == (
        Kit("QAIRT SDK", "QAIRT_SDK_ROOT", str(tmp_path), None),
        Kit("Android NDK", "ANDROID_NDK_ROOT", "/nowhere", "source.properties"),
    )
    assert gather.kits({"QAIRT_SDK_ROOT": ""}) == ()


def test_this_machine_says_the_truth() -> None:
    found = gather.machine()
    assert (found.system, found.architecture) == (os.uname().sysname, os.uname().machine)
    assert 0 < found.memory_available <= found.memory_total
    assert 1 <= found.cores <= (os.cpu_count() or 1)


def test_the_trial_chip_is_in_the_table_and_can_do_fp16() -> None:
    assert load_table().by_soc_id(TRIAL_SOC_ID).fp16
