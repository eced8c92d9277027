"""From facts to a verdict: what is wrong, how much it matters, and what can be done here. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from qnn.doctor.facts import Facts, Failed, Kit, Library, Machine, StorePlace, Toolchain, Worked
from qnn.errors.base import ForgeError
from qnn.errors.doctor import (
    KitIncomplete,
    LibraryUnusable,
    LittleDisk,
    LittleMemory,
    OldLibc,
    PackageMissing,
    TrialFailed,
    TrialWrong,
    UntestedPair,
    WrongPlatform,
)
from qnn.errors.system import NotWritable
from qnn.toolchains.pip.toolchain import KNOWN_BUILDS

PLATFORM = ("Linux", "x86_64")
# The onnxruntime-qnn wheel's platform tag.
GLIBC = (2, 35)
# The onnxruntime that the versions of KNOWN_BUILDS were tested with (docs/toolchains.md).
ONNXRUNTIME = "1.32"
TRIAL_SOC_ID = 57  # SM8650
# The trial's values are products near 1; fp16 has 11 bits.
TRIAL_TOLERANCE = 2e-3
SYSTEM_LIBRARY = "libQnnSystem.so"

# Bytes. The smallest compile takes 0.19 GB and BERT base 1.5 GB (measured, QAIRT 2.51).
_MEMORY_NEEDED = 500_000_000
_MEMORY_WISHED = 2_000_000_000
_DISK_NEEDED = 200_000_000
_DISK_WISHED = 2_000_000_000
_REINSTALL = "pip install --force-reinstall --no-deps -c constraints.txt onnxruntime-qnn"
# What the dynamic linker says of a library that another one needs.
_NEEDED_LIBRARY = re.compile(r"(\S+\.so[.\d]*): cannot open shared object file")
# libQnnSystem.so needs libatomic, which slim images lack.
_DEBIAN_PACKAGES = {"libatomic.so.1": "libatomic1"}


class Work(StrEnum):
    """What a person may want to do on a machine."""

    BUILD = "build"
    VERIFY = "verify"
    INSPECT = "inspect"
    LINT = "lint"
    PIN = "pin"


_COMPILER = frozenset({Work.BUILD, Work.VERIFY})
_READER = _COMPILER | {Work.INSPECT}
_STORE = frozenset({Work.BUILD, Work.PIN})


@dataclass(frozen=True)
class Finding:
    """One fault, and what it makes impossible: nothing means that it is a warning."""

    error: ForgeError
    stops: frozenset[Work] = frozenset()


@dataclass(frozen=True)
class Ability:
    """Whether one kind of work can be done; `because` are the ids that stop it."""

    work: Work
    because: tuple[str, ...]

    @property
    def possible(self) -> bool:
        """Nothing stops it."""
        return not self.because


@dataclass(frozen=True)
class Verdict:
    """What the facts mean. Findings stand in the order in which they should be mended."""

    findings: tuple[Finding, ...]
    abilities: tuple[Ability, ...]

    @property
    def sound(self) -> bool:
        """Everything can be done here."""
        return all(ability.possible for ability in self.abilities)


def judge(facts: Facts) -> Verdict:
    """The verdict on a machine and an installation."""
    findings = (
        *_machine(facts.machine),
        *_toolchain(facts.toolchain),
        *_trial(facts),
        *_store(facts.store),
        *_memory(facts.machine),
        *_kits(facts.kits),
    )
    return Verdict(findings, tuple(Ability(work, _stoppers(work, findings)) for work in Work))


def _stoppers(work: Work, findings: tuple[Finding, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.error.id for finding in findings if work in finding.stops))


def _machine(machine: Machine) -> Iterator[Finding]:
    platform = (machine.system, machine.architecture)
    if platform != PLATFORM:
        error = WrongPlatform(
            f"the compiler runs on Linux x86_64, not on {machine.system} {machine.architecture}",
            remedy="build on Linux x86-64: a CI runner, or the image of docs/docker.md",
        )
        yield Finding(error, _COMPILER)
    elif not _new_enough(*machine.libc):
        found = " ".join(machine.libc).strip() or "a C library that is not glibc"
        error_libc = OldLibc(
            f"the toolchain needs glibc {GLIBC[0]}.{GLIBC[1]} or newer, and this is {found}",
            remedy="use Debian 12, Ubuntu 22.04 or newer, or the image of docs/docker.md",
        )
        yield Finding(error_libc, _READER)


def _new_enough(libc: str, version: str) -> bool:
    number = re.match(r"(\d+)\.(\d+)", version)
    return libc == "glibc" and number is not None and (int(number[1]), int(number[2])) >= GLIBC


def _toolchain(toolchain: Toolchain) -> Iterator[Finding]:
    packages = {"onnxruntime": toolchain.onnxruntime, "onnxruntime-qnn": toolchain.onnxruntime_qnn}
    missing = [name for name, version in packages.items() if version is None]
    if missing:
        error = PackageMissing(
            f"not installed: {', '.join(missing)}",
            remedy=f"pip install -c constraints.txt {' '.join(missing)}",
        )
        yield Finding(error, _READER if toolchain.onnxruntime_qnn is None else _COMPILER)
    elif not is_tested_pair(toolchain):
        yield Finding(
            UntestedPair(
                f"onnxruntime {toolchain.onnxruntime} with onnxruntime-qnn {toolchain.onnxruntime_qnn} is not a "
                "tested pair",
                remedy="install the pair of constraints.txt, or see docs/toolchains.md",
            )
        )
    if toolchain.onnxruntime_qnn is not None:
        for library in toolchain.libraries:
            yield from _library(library)


def is_tested_pair(toolchain: Toolchain) -> bool:
    """Whether the two packages were tested together (docs/toolchains.md)."""
    onnxruntime = toolchain.onnxruntime or ""
    return toolchain.onnxruntime_qnn in KNOWN_BUILDS and onnxruntime.startswith(f"{ONNXRUNTIME}.")


def _library(library: Library) -> Iterator[Finding]:
    if library.fault is None:
        return
    what = "is missing from the wheel" if library.size is None else f"does not load: {library.fault}"
    stops = _READER if library.name == SYSTEM_LIBRARY else _COMPILER
    yield Finding(LibraryUnusable(f"{library.name} {what}", remedy=_library_remedy(library)), stops)


def _library_remedy(library: Library) -> str:
    needed = _NEEDED_LIBRARY.match(library.fault or "")
    if needed is None or needed[1] == library.name:
        return _REINSTALL
    package = _DEBIAN_PACKAGES.get(needed[1])
    hint = f" (Debian and Ubuntu: apt-get install {package})" if package else ""
    return f"install the system's package that holds {needed[1]}{hint}"


def _trial(facts: Facts) -> Iterator[Finding]:
    trial = facts.trial
    if isinstance(trial, Failed):
        error = TrialFailed(
            f"a graph of one operator could not be {trial.step}: {trial.message}",
            remedy="mend the other faults first, then read the details",
            details=trial.details,
        )
        yield Finding(error, _COMPILER)
    elif isinstance(trial, Worked):
        wrong = _wrong(trial, KNOWN_BUILDS.get(facts.toolchain.onnxruntime_qnn or ""))
        if wrong:
            remedy = "unset LD_LIBRARY_PATH and use a fresh virtual environment with the pinned packages"
            yield Finding(TrialWrong("; ".join(wrong), remedy=remedy), _COMPILER)


def _wrong(trial: Worked, known_build: str | None) -> list[str]:
    wrong = []
    if known_build is not None and trial.build_id != known_build:
        wrong.append(f"the compiler is QAIRT build {trial.build_id}, and this wheel's is {known_build}")
    if trial.soc_id != TRIAL_SOC_ID:
        wrong.append(f"the binary was made for soc_id {trial.soc_id}, and {TRIAL_SOC_ID} was asked for")
    if not trial.worst <= TRIAL_TOLERANCE:  # a NaN is wrong too
        wrong.append(f"the emulator's product is off by {trial.worst:.3g}, more than fp16's {TRIAL_TOLERANCE}")
    return wrong


def _store(store: StorePlace) -> Iterator[Finding]:
    if store.fault is not None:
        error = NotWritable(
            f"the store {store.path} cannot be written to: {store.fault}",
            remedy="choose another folder with --store or QNN_FORGE_STORE, or mend its permissions",
        )
        yield Finding(error, _STORE)
        return
    if store.free < _DISK_WISHED:
        little = LittleDisk(
            f"{gigabytes(store.free)} free for the store {store.path}",
            remedy="free space, run qnn-forge store prune --max-size 10G, or use --store on another disk",
        )
        yield Finding(little, _STORE if store.free < _DISK_NEEDED else frozenset())


def _memory(machine: Machine) -> Iterator[Finding]:
    available = machine.memory_available
    if available < _MEMORY_WISHED:
        where = " within the container's limit" if machine.memory_limited else ""
        error = LittleMemory(
            f"{gigabytes(available)} of memory free{where}",
            remedy="end other programs, raise the limit, or build small models with --jobs 1",
        )
        yield Finding(error, _COMPILER if available < _MEMORY_NEEDED else frozenset())


def _kits(kits: tuple[Kit, ...]) -> Iterator[Finding]:
    for kit in kits:
        if kit.missing is not None:
            remedy = f"set {kit.variable} to the folder that holds it, or unset it"
            yield Finding(KitIncomplete(f"{kit.variable}={kit.folder} holds no {kit.missing}", remedy=remedy))


def gigabytes(size: int) -> str:
    """Bytes as a person reads them: 1.5 GB."""
    return f"{size / 1e9:.1f} GB"
