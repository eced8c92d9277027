"""What is known of a machine and an installation. Gathered by qnn.doctor.gather, judged by qnn.doctor.judge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The machine as this process may use it.

    `system` and `architecture` are as `uname` says them; `libc` is the name and version of the C library ("glibc",
    "2.36"), both empty where Python cannot tell (musl). `cores` is how many this process may run on, less where a
    container allows less time. Memory is bytes; `memory_limited` says that a container's limit is the smaller one.
    """

    system: str
    architecture: str
    libc: tuple[str, str]
    python: str
    cores: int
    memory_total: int
    memory_available: int
    memory_limited: bool


@dataclass(frozen=True)
class Library:
    """One library of the toolchain. `size` is bytes, None when the file is missing; `fault` says why it does not
    load, None when it does."""

    name: str
    size: int | None
    fault: str | None


@dataclass(frozen=True)
class Toolchain:
    """The pip toolchain as installed. Versions are None where the package, or what it says of itself, is missing."""

    onnxruntime: str | None
    onnxruntime_qnn: str | None
    qairt: str | None
    libraries: tuple[Library, ...]


@dataclass(frozen=True)
class StorePlace:
    """Where stage outputs go. `fault` is the system's reason why nothing can be written there, None when it can;
    `exists` is False when the first build will make the folder; `free` is bytes."""

    path: str
    exists: bool
    fault: str | None
    free: int


@dataclass(frozen=True)
class Worked:
    """The trial graph compiled, was read back, and ran. `build_id` and `soc_id` are the binary's own; `worst` is the
    largest difference to the right result, whose values are about 1."""

    build_id: str
    soc_id: int | None
    worst: float
    seconds: float


@dataclass(frozen=True)
class Failed:
    """The trial ended in an error: which step, its message, and the log's last lines."""

    step: str
    message: str
    details: tuple[str, ...]


@dataclass(frozen=True)
class NotTried:
    """There was nothing to try with."""

    reason: str


Trial = Worked | Failed | NotTried


@dataclass(frozen=True)
class Kit:
    """A kit beside the pip toolchain, named by an environment variable: the full QAIRT SDK or the Android NDK.

    `missing` is a file that every such kit has and this one has not; None when it is there.
    """

    name: str
    variable: str
    folder: str
    missing: str | None


@dataclass(frozen=True)
class Facts:
    """Everything the doctor looked at."""

    version: str
    machine: Machine
    toolchain: Toolchain
    store: StorePlace
    trial: Trial
    kits: tuple[Kit, ...]
