"""Look at the machine and the installation. Vendor code is only ever touched in child processes.

Nothing is left behind, and the network is not needed.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from qnn import __version__
from qnn.child import Host, Limits
from qnn.chips.table import load_table
from qnn.doctor import resources
from qnn.doctor.facts import Facts, Failed, Kit, Library, Machine, NotTried, StorePlace, Toolchain, Trial, Worked
from qnn.doctor.jobs import Compiled, CompileTrial, RunTrial
from qnn.doctor.judge import PLATFORM, SYSTEM_LIBRARY, TRIAL_SOC_ID
from qnn.errors.base import ForgeError

LIBRARIES = ("libHtpPrepare.so", "libQnnHtp.so", SYSTEM_LIBRARY, "libonnxruntime_providers_qnn.so")
_PACKAGE = "onnxruntime_qnn"
# The jobs, by name, so that a test can put a crash or a hang in their place.
VERSION_JOB = "qnn.doctor.jobs:qairt_version"
LOAD_JOB = "qnn.doctor.jobs:load_library"
COMPILE_JOB = "qnn.doctor.jobs:compile_trial"
RUN_JOB = "qnn.doctor.jobs:run_trial"
_LIMITS = Limits(seconds=120.0, memory_bytes=4 << 30)
# The full kits of the image's target `sdk`: name, variable, and a file that every release of it has.
_KITS = (
    ("QAIRT SDK", "QAIRT_SDK_ROOT", "bin/x86_64-linux-clang/qnn-context-binary-generator"),
    ("Android NDK", "ANDROID_NDK_ROOT", "source.properties"),
)


def gather(store: Path) -> Facts:
    """Everything the judge needs. Takes a second or two: it compiles and runs a graph of one operator."""
    with tempfile.TemporaryDirectory(prefix="qnn-forge-doctor-") as scratch:
        host = Host(preload=())  # onnxruntime may be what is broken
        try:
            found = toolchain(host, Path(scratch))
            return Facts(
                version=__version__,
                machine=machine(),
                toolchain=found,
                store=store_place(store),
                trial=trial(found, host, Path(scratch)),
                kits=kits(os.environ),
            )
        finally:
            host.close()


def machine() -> Machine:
    """This machine as this process may use it."""
    memory = resources.memory()
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        libc=platform.libc_ver(),
        python=platform.python_version(),
        cores=resources.cores(),
        memory_total=memory.total,
        memory_available=memory.available,
        memory_limited=memory.limited,
    )


def toolchain(host: Host, scratch: Path) -> Toolchain:
    """The packages, and each library loaded in a child of its own."""
    folder = _package_folder()
    return Toolchain(
        onnxruntime=_version("onnxruntime"),
        onnxruntime_qnn=_version("onnxruntime-qnn"),
        qairt=_ask_version(host, scratch),
        libraries=() if folder is None else tuple(_library(folder / name, host, scratch) for name in LIBRARIES),
    )


def _package_folder() -> Path | None:
    spec = importlib.util.find_spec(_PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _ask_version(host: Host, scratch: Path) -> str | None:
    try:
        found: str | None = host.call(VERSION_JOB, None, log=scratch / "version.log", limits=_LIMITS)
    except ForgeError:  # the package is damaged; its libraries and the trial say how
        return None
    return found


def _library(path: Path, host: Host, scratch: Path) -> Library:
    if not path.is_file():
        return Library(path.name, None, "missing")
    log = scratch / f"{path.name}.log"
    try:
        fault: str | None = host.call(LOAD_JOB, str(path), log=log, limits=_LIMITS)
    except ForgeError as error:
        fault = error.message
    return Library(path.name, path.stat().st_size, fault)


def trial(installed: Toolchain, host: Host, scratch: Path) -> Trial:
    """Compile, read back and run a graph of one operator, as a build does."""
    if (platform.system(), platform.machine()) != PLATFORM:
        return NotTried("there is no compiler for this platform")
    if installed.onnxruntime is None or installed.onnxruntime_qnn is None:
        return NotTried("the toolchain is not installed")
    work = scratch / "trial"
    work.mkdir()
    began = time.monotonic()
    log = scratch / "trial.log"
    soc = load_table().by_soc_id(TRIAL_SOC_ID)
    step = "compiled"
    try:
        compile_request = CompileTrial(soc.soc_id, soc.vtcm_mb)
        compiled: Compiled = host.call(COMPILE_JOB, compile_request, log=log, limits=_LIMITS, cwd=work)
        step = "run on the emulator"
        worst: float = host.call(RUN_JOB, RunTrial(soc.soc_id), log=log, limits=_LIMITS, cwd=work)
    except ForgeError as error:
        return Failed(step, error.message, error.details)
    return Worked(compiled.build_id, compiled.soc_id, worst, time.monotonic() - began)


def store_place(store: Path) -> StorePlace:
    """Whether a file can be written where the store is or will be; the file is removed again."""
    path = store.absolute()
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest) as probe:
            probe.write(b"qnn-forge")
            probe.flush()
        fault = None
    except OSError as error:
        fault = error.strerror or str(error)
    return StorePlace(str(path), nearest == path, fault, _free(nearest))


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def kits(environment: Mapping[str, str]) -> tuple[Kit, ...]:
    """The kits that the environment names."""
    return tuple(
        Kit(name, variable, environment[variable], None if Path(environment[variable], file).is_file() else file)
        for name, variable, file in _KITS
        if environment.get(variable)
    )
