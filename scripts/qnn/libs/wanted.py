"""Which files of a package a chip needs, and which libraries the system has. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from qnn.errors.libs import ArchNotServed, NotTheOfficialPackage
from qnn.libs.packages import Arch, Os, Package, Platform


class Role(StrEnum):
    """What a file is for."""

    SYSTEM = "system"  # reads context binaries
    BACKEND = "backend"  # the HTP backend; on x86_64 the emulator
    STUB = "stub"  # the backend's half on the CPU
    SKEL = "skel"  # its half on the NPU
    CATALOGUE = "catalogue"  # Windows' signature of a Skel
    PREPARE = "prepare"  # compiles graphs on the device
    SUPPORT = "support"  # what the wheel's libraries need and the system lacks
    LICENCE = "licence"


@dataclass(frozen=True)
class Wanted:
    """One file: where it is in the package, where it goes in the set; of a Skel and its catalogue also the Hexagon
    version (v75)."""

    member: str
    target: str
    role: Role
    hexagon: str | None = None


_SKEL = re.compile(r"libQnnHtpV(\d+)Skel\.so")
_VENDORED = re.compile(r"onnxruntime_qnn\.libs/[A-Za-z0-9][\w.+-]*\.so[\d.]*")


def wanted_files(
    platform: Platform, package: Package, members: Sequence[str], hexagons: Iterable[str], *, prepare: bool
) -> tuple[Wanted, ...]:
    """The files to take from a package for chips of these Hexagon versions, by target name.

    `members` are all names in the package. Raises ArchNotServed (QF772) where it has no Stub or Skel for a chip, and
    NotTheOfficialPackage (QF773) where it lacks what every such package has.
    """
    there, os, folder = set(members), platform.os, package.folder
    found = [Wanted(folder + _library(os, "QnnSystem"), f"lib/{_library(os, 'QnnSystem')}", Role.SYSTEM)]
    found.append(Wanted(folder + _library(os, "QnnHtp"), f"lib/{_library(os, 'QnnHtp')}", Role.BACKEND))
    if prepare:
        name = _library(os, "HtpPrepare" if platform.arch is Arch.X86_64 else "QnnHtpPrepare")
        found.append(Wanted(folder + name, f"lib/{name}", Role.PREPARE))
    if platform.arch is not Arch.X86_64:
        for hexagon in sorted(set(hexagons)):
            found += _for_hexagon(platform, package, there, hexagon)
    # The wheel's libraries look for these beside their own folder, under this name.
    found += [Wanted(name, name, Role.SUPPORT) for name in there if _VENDORED.fullmatch(name)]
    found += [Wanted(name, f"licences/{name.rpartition('/')[2]}", Role.LICENCE) for name in package.licences]
    missing = [wanted.member for wanted in found if wanted.member not in there]
    if missing:
        raise NotTheOfficialPackage(
            f"{package} lacks {', '.join(missing)}",
            remedy="get it again from where it is published; a package without its licence texts cannot be used",
        )
    return tuple(sorted(found, key=lambda wanted: wanted.target))


def _library(os: Os, name: str) -> str:
    return f"{name}.dll" if os is Os.WINDOWS else f"lib{name}.so"


def _for_hexagon(platform: Platform, package: Package, there: set[str], hexagon: str) -> list[Wanted]:
    number, folder = hexagon.removeprefix("v"), package.folder
    stub, skel = _library(platform.os, f"QnnHtpV{number}Stub"), f"libQnnHtpV{number}Skel.so"
    if folder + stub not in there or folder + skel not in there:
        served = sorted(
            f"v{match[1]}"
            for name in there
            if name.startswith(folder) and (match := _SKEL.fullmatch(name.removeprefix(folder)))
        )
        raise ArchNotServed(
            f"{package} has no HTP libraries for {hexagon}; it has those for {', '.join(served) or 'no chip at all'}",
            remedy="check --os and --soc; for a chip newer than the package take a newer --toolchain",
        )
    found = [
        Wanted(folder + stub, f"lib/{stub}", Role.STUB),
        Wanted(folder + skel, f"lib/{skel}", Role.SKEL, hexagon),
    ]
    # Windows loads a Skel only with its catalogue, from v73 on; there is none for v68.
    catalogue = f"libqnnhtpv{number}.cat"
    if platform.os is Os.WINDOWS and folder + catalogue in there:
        found.append(Wanted(folder + catalogue, f"lib/{catalogue}", Role.CATALOGUE, hexagon))
    return found


_C_LIBRARY = "the C library"
_SYSTEM: dict[Os, dict[str, str]] = {
    Os.LINUX: {
        **dict.fromkeys(("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"), _C_LIBRARY),
        **dict.fromkeys(("ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"), _C_LIBRARY),
        **dict.fromkeys(("libstdc++.so.6", "libgcc_s.so.1", "libatomic.so.1"), "GCC's runtime (libstdc++, libatomic)"),
        "libcdsprpc.so": "the device's FastRPC package",
    },
    Os.ANDROID: {
        **dict.fromkeys(("libc.so", "libm.so", "libdl.so", "liblog.so", "libandroid.so", "libz.so"), "Android"),
        "libc++_shared.so": "the app (the NDK's C++ library)",
        "libcdsprpc.so": "the device; the app's manifest must name it in <uses-native-library>",
    },
    Os.WINDOWS: {
        **dict.fromkeys(
            ("advapi32.dll", "kernel32.dll", "ntdll.dll", "ole32.dll", "shell32.dll", "shlwapi.dll", "user32.dll"),
            "Windows",
        ),
        **dict.fromkeys(("version.dll", "wer.dll", "ws2_32.dll", "bcrypt.dll", "ucrtbase.dll"), "Windows"),
        **dict.fromkeys(
            ("msvcp140.dll", "msvcp140_1.dll", "vcruntime140.dll", "vcruntime140_1.dll"), "the Visual C++ runtime"
        ),
        "libcdsprpc.dll": "the NPU's driver",
    },
}
# A Skel's needs are met on the DSP, by the image that is in the device's firmware.
_DSP = dict.fromkeys(("libc++.so.1", "libc++abi.so.1", "libgcc.so", "libc.so"), "the DSP's own libraries")


def provider(os: Os, machine: str, name: str) -> str | None:
    """Who brings a library that is not in the set, in words; None if nobody is known to."""
    if machine == "hexagon":
        return _DSP.get(name)
    if os is Os.WINDOWS and name.lower().startswith(("api-ms-win-", "ext-ms-win-")):
        return "Windows"
    return _SYSTEM[os].get(name.lower() if os is Os.WINDOWS else name)
