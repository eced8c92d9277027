"""The runtime for the device: libraries from `qnn-forge libs` or an SDK, and qnn-net-run. Reads this machine only."""

from __future__ import annotations

import gzip
import json
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.chips.soc import Soc, qairt_key
from qnn.device.facts import DeviceFacts
from qnn.errors.device import NetRunMissing, RuntimeTooOld, RuntimeUnusable
from qnn.store import file_digest
from qnn.tar import UnsafeTarError, extract_files

NET_RUN = "qnn-net-run"
ABI = "arm64-v8a"
_BACKEND = "libQnnHtp.so"
_SDK_LIBRARIES = "lib/aarch64-android"
_SDK_PROGRAM = f"bin/aarch64-android/{NET_RUN}"
_SDK_VIEWER = "bin/x86_64-linux-clang/qnn-profile-viewer"


@dataclass(frozen=True)
class RuntimeFile:
    """One file that goes onto the device under `name`."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True)
class Runtime:
    """A set of libraries: the QAIRT version and build they are of, and where they come from in words."""

    qairt: str
    build_id: str
    origin: str
    libraries: tuple[RuntimeFile, ...]


def from_archive(archive: Path, folder: Path, chip: Soc) -> Runtime:
    """The libraries of a ``qnn-libs-….tar.gz``, unpacked into the empty `folder`, checked against its own manifest.

    Raises RuntimeUnusable (QF789) for another archive, another system, a changed file, or no Skel for the chip.
    """
    try:
        extract_files(archive, folder, "r:gz")
    except UnsafeTarError as error:
        raise _unusable(f"{archive.name} {error}") from None
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _unusable(f"{archive.name} is truncated or no archive: {error}") from None
    manifests = sorted(folder.glob("*/manifest.json"))
    if len(manifests) != 1:
        raise _unusable(f"{archive.name} is not from qnn-forge libs: it holds no manifest.json")
    root = manifests[0].parent
    try:
        document = json.loads(manifests[0].read_text(encoding="utf-8"))
        system, listed = (document["kind"], document["os"], document["arch"]), document["files"]
        files = tuple((str(one["path"]), str(one["sha256"])) for one in listed if str(one["path"]).startswith("lib/"))
        qairt, build_id = str(document["qairt"]), str(document["build_id"])
        qairt_key(qairt)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unusable(f"{archive.name} holds a manifest.json that is not one of qnn-forge libs") from None
    if system[0] != "qnn-libs":
        raise _unusable(f"{archive.name} is no set of libraries but {system[0]!r:.40}")
    if system[1:] != ("android", "aarch64"):
        raise _unusable(f"{archive.name} is for {system[1]} on {system[2]}; the device needs android on aarch64")
    libraries = tuple(_held(root / path, sha256, archive.name) for path, sha256 in sorted(files))
    return _checked(Runtime(qairt, build_id, archive.name, libraries), chip)


def from_sdk(sdk: Path, chip: Soc) -> Runtime:
    """The libraries of an unpacked QAIRT SDK. Raises RuntimeUnusable (QF789)."""
    from qnn.libs.image import build_ids  # noqa: PLC0415

    number = chip.arch.removeprefix("v")
    wanted = [
        *(f"{_SDK_LIBRARIES}/{name}" for name in ("libQnnSystem.so", _BACKEND, f"libQnnHtpV{number}Stub.so")),
        f"lib/hexagon-{chip.arch}/unsigned/libQnnHtpV{number}Skel.so",
    ]
    missing = [name for name in wanted if not (sdk / name).is_file()]
    if missing:
        raise _unusable(f"the SDK in {sdk} lacks {', '.join(missing)}")
    builds = build_ids((sdk / _SDK_LIBRARIES / _BACKEND).read_bytes())
    if len(builds) != 1:
        raise _unusable(f"{_BACKEND} of the SDK in {sdk} does not say which QAIRT it is of")
    libraries = tuple(sorted((_file(sdk / name) for name in wanted), key=lambda file: file.name))
    qairt = ".".join(builds[0].removeprefix("v").split(".")[:3])
    return _checked(Runtime(qairt, builds[0], "QNN_SDK_ROOT", libraries), chip)


def require_abi(facts: DeviceFacts) -> None:
    """Raise RuntimeUnusable (QF789) for a device whose programs are not for 64-bit Arm; QAIRT has nothing for it."""
    if facts.abi != ABI:
        raise RuntimeUnusable(
            f"the device's programs are for {facts.abi or 'an unknown machine'}; QAIRT has libraries for {ABI}",
            remedy="run the float model on the CPU",
        )


def require_runtime(archive: Path | None, sdk: Path | None, folder: Path, chip: Soc, qairt: str) -> Runtime:
    """The runtime for a chip, of at least this QAIRT.

    Raises RuntimeUnusable (QF789) where there is none, RuntimeTooOld (QF791).
    """
    if archive is not None:
        found = from_archive(archive, folder, chip)
    elif sdk is not None:
        found = from_sdk(sdk, chip)
    else:
        raise _unusable("no runtime libraries were given, and QNN_SDK_ROOT names no SDK")
    # Context binaries are forward-only: measured, 2.48 loads on 2.51 and 2.51 does not on 2.48.
    if qairt_key(found.qairt) < qairt_key(qairt):
        raise RuntimeTooOld(
            f"{found.origin} has QAIRT {found.qairt}; the bundle was made by {qairt}",
            remedy=f"qnn-forge libs --soc {chip.name} --os android --toolchain {qairt}, or a newer one",
        )
    return found


def find_net_run(given: Path | None, sdk: Path | None, on_device: Sequence[str]) -> RuntimeFile | str:
    """qnn-net-run: the file given, the SDK's, or the path of one on the device. Raises NetRunMissing (QF790)."""
    if given is not None:
        return RuntimeFile(NET_RUN, given, file_digest(given))
    if sdk is not None and (sdk / _SDK_PROGRAM).is_file():
        return RuntimeFile(NET_RUN, sdk / _SDK_PROGRAM, file_digest(sdk / _SDK_PROGRAM))
    if on_device:
        return on_device[0]
    where = f"the SDK in {sdk} lacks {_SDK_PROGRAM}" if sdk is not None else "QNN_SDK_ROOT is not set"
    raise NetRunMissing(
        f"qnn-net-run is not given, {where}, and the device has none",
        remedy="get the QAIRT SDK from Qualcomm and set QNN_SDK_ROOT, or give its qnn-net-run with --net-run",
    )


def find_viewer(sdk: Path | None) -> Path | None:
    """The SDK's qnn-profile-viewer, which alone can read qnn-net-run's profile."""
    viewer = None if sdk is None else sdk / _SDK_VIEWER
    return viewer if viewer is not None and viewer.is_file() else None


def _checked(runtime: Runtime, chip: Soc) -> Runtime:
    number = chip.arch.removeprefix("v")
    there = {file.name for file in runtime.libraries}
    wanted = {"libQnnSystem.so", _BACKEND, f"libQnnHtpV{number}Stub.so", f"libQnnHtpV{number}Skel.so"}
    if wanted - there:
        raise _unusable(
            f"{runtime.origin} lacks {', '.join(sorted(wanted - there))}, which {chip.name} ({chip.arch}) needs",
            f"qnn-forge libs --soc {chip.name} --os android",
        )
    return runtime


def _held(path: Path, sha256: str, origin: str) -> RuntimeFile:
    found = _file(path) if path.is_file() else None
    if found is None or found.sha256 != sha256:
        raise _unusable(f"{path.name} in {origin} is {'changed' if found else 'missing'}, by its own manifest")
    return found


def _file(path: Path) -> RuntimeFile:
    return RuntimeFile(path.name, path, file_digest(path))


def _unusable(message: str, command: str = "qnn-forge libs --soc CHIP --os android") -> RuntimeUnusable:
    return RuntimeUnusable(message, remedy=f"make them with `{command}` and give the archive with --libs")
