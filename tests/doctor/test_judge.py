"""The judge: every fault by its id, and exactly the work that it stops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qnn.doctor.facts import Facts, Failed, Kit, Library, Machine, NotTried, StorePlace, Worked
from qnn.doctor.judge import TRIAL_SOC_ID, Verdict, Work, gigabytes, is_tested_pair, judge
from tests.doctor.fake_facts import BUILD, GB, machine, sound, toolchain

COMPILER = {Work.BUILD, Work.VERIFY}
READER = COMPILER | {Work.INSPECT}
STORE = {Work.BUILD, Work.PIN}


def stopped(verdict: Verdict) -> set[Work]:
    return {ability.work for ability in verdict.abilities if not ability.possible}


def on(changed: Machine) -> Facts:
    return replace(sound(), machine=changed)


def with_library(name: str, size: int | None, fault: str) -> Facts:
    libraries = [Library(name, size, fault) if lib.name == name else lib for lib in toolchain().libraries]
    return replace(sound(), toolchain=replace(toolchain(), libraries=tuple(libraries)))


def with_pair(onnxruntime: str | None, onnxruntime_qnn: str | None) -> Facts:
    return replace(sound(), toolchain=replace(toolchain(), onnxruntime=onnxruntime, onnxruntime_qnn=onnxruntime_qnn))


def with_store(fault: str | None, free: int) -> Facts:
    return replace(sound(), store=StorePlace("/store", exists=True, fault=fault, free=free))


def with_trial(trial: Worked | Failed | NotTried) -> Facts:
    return replace(sound(), trial=trial)


def test_nothing_is_wrong_with_a_sound_machine() -> None:
    verdict = judge(sound())
    assert verdict.findings == ()
    assert verdict.sound
    assert [ability.work for ability in verdict.abilities] == list(Work)


FAULTS = [
    (on(replace(machine(), system="Darwin", architecture="arm64", libc=("", ""))), "QF930", COMPILER),
    (on(replace(machine(), architecture="aarch64")), "QF930", COMPILER),
    (on(replace(machine(), libc=("glibc", "2.34"))), "QF931", READER),
    (on(replace(machine(), libc=("glibc", "2.9"))), "QF931", READER),
    (on(replace(machine(), libc=("", ""))), "QF931", READER),
    (on(replace(machine(), libc=("musl", "2.40"))), "QF931", READER),
    (with_pair(None, "2.7.0"), "QF932", COMPILER),
    (with_pair("1.32.0", None), "QF932", READER),
    (with_pair("1.32.0", "2.3.0"), "QF933", set()),
    (with_pair("1.33.0", "2.7.0"), "QF933", set()),
    (with_pair("1.320.0", "2.7.0"), "QF933", set()),
    (with_library("libQnnHtp.so", None, "missing"), "QF934", COMPILER),
    (with_library("libQnnSystem.so", 9, "file too short"), "QF934", READER),
    (with_trial(Failed("compiled", "no QNN device", ())), "QF935", COMPILER),
    (with_trial(Worked("v2.50.40.260831140417", TRIAL_SOC_ID, 0.0, 1.0)), "QF936", COMPILER),
    (with_trial(Worked(BUILD, 0, 0.0, 1.0)), "QF936", COMPILER),
    (with_trial(Worked(BUILD, TRIAL_SOC_ID, 0.5, 1.0)), "QF936", COMPILER),
    (with_trial(Worked(BUILD, TRIAL_SOC_ID, float("nan"), 1.0)), "QF936", COMPILER),
    (on(replace(machine(), memory_available=400_000_000)), "QF937", COMPILER),
    (on(replace(machine(), memory_available=1 * GB)), "QF937", set()),
    (with_store(None, 100_000_000), "QF938", STORE),
    (with_store(None, 1 * GB), "QF938", set()),
    (with_store("Read-only file system", 50 * GB), "QF902", STORE),
    (replace(sound(), kits=(Kit("QAIRT SDK", "QAIRT_SDK_ROOT", "/x", "bin/tool"),)), "QF939", set()),
]


@pytest.mark.parametrize(("facts", "fault", "stops"), FAULTS)
def test_each_fault_has_its_id_and_stops_what_it_must(facts: Facts, fault: str, stops: set[Work]) -> None:
    verdict = judge(facts)
    assert [finding.error.id for finding in verdict.findings] == [fault]
    assert stopped(verdict) == stops
    assert verdict.sound == (not stops)
    assert all(ability.because == (fault,) for ability in verdict.abilities if not ability.possible)


def test_lint_can_be_done_whatever_is_broken() -> None:
    facts = replace(
        with_store("Permission denied", 0),
        machine=replace(machine(), system="Darwin", memory_available=0),
        toolchain=replace(toolchain(), onnxruntime=None, onnxruntime_qnn=None, qairt=None, libraries=()),
        trial=NotTried("there is no compiler for this platform"),
    )
    verdict = judge(facts)
    assert stopped(verdict) == set(Work) - {Work.LINT}
    build = verdict.abilities[0]
    assert build.work is Work.BUILD
    assert build.because == ("QF930", "QF932", "QF902", "QF937")


def test_a_missing_system_library_is_not_mended_by_reinstalling_the_wheel() -> None:
    reason = "libatomic.so.1: cannot open shared object file: No such file or directory"
    (finding,) = judge(with_library("libQnnSystem.so", 5_385_113, reason)).findings
    assert "apt-get install libatomic1" in finding.error.remedy
    (other,) = judge(with_library("libQnnSystem.so", 5, reason.replace("libatomic.so.1", "libfoo.so"))).findings
    assert other.error.remedy == "install the system's package that holds libfoo.so"
    (own,) = judge(with_library("libQnnSystem.so", 5, reason.replace("libatomic.so.1", "libQnnSystem.so"))).findings
    assert own.error.remedy.startswith("pip install --force-reinstall")


def test_a_library_of_a_wheel_that_is_not_installed_is_no_second_fault() -> None:
    facts = with_pair("1.32.0", None)
    broken = tuple(replace(library, fault="missing", size=None) for library in facts.toolchain.libraries)
    facts = replace(facts, toolchain=replace(facts.toolchain, libraries=broken))
    assert [finding.error.id for finding in judge(facts).findings] == ["QF932"]


def test_the_build_of_an_unknown_wheel_cannot_be_wrong() -> None:
    facts = replace(with_pair("1.32.0", "9.9.9"), trial=Worked("v9.9.9", TRIAL_SOC_ID, 0.0, 1.0))
    assert [finding.error.id for finding in judge(facts).findings] == ["QF933"]


def test_a_complete_kit_is_no_fault() -> None:
    facts = replace(sound(), kits=(Kit("QAIRT SDK", "QAIRT_SDK_ROOT", "/x", None),))
    assert judge(facts).findings == ()


def test_a_containers_limit_is_named() -> None:
    facts = on(replace(machine(), memory_available=GB, memory_limited=True))
    (finding,) = judge(facts).findings
    assert finding.error.message == "1.0 GB of memory free within the container's limit"


@pytest.mark.parametrize(
    ("onnxruntime", "wheel", "tested"),
    [("1.32.0", "2.4.0", True), ("1.32.1", "2.7.0", True), ("1.24.4", "2.3.0", False), (None, "2.7.0", False)],
)
def test_tested_pairs_are_those_of_the_documentation(onnxruntime: str | None, wheel: str, tested: bool) -> None:
    assert is_tested_pair(with_pair(onnxruntime, wheel).toolchain) is tested


def test_sizes_are_decimal() -> None:
    assert gigabytes(1_540_000_000) == "1.5 GB"
