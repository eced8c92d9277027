"""Which official package holds the runtime libraries of a QAIRT version for a platform. Pure.

Wheels: read from PyPI, digests and builds as downloaded on 2026-11-30 (cp311; other Pythons' wheels hold the same
libraries). AARs: as public projects report them, see docs/runtime-libraries.md; none was opened here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from qnn.errors.libs import NoSuchLibraries
from qnn.toolchains.pip.toolchain import KNOWN_BUILDS

OLDEST = "2.48"


class Os(StrEnum):
    """Operating system of the device."""

    ANDROID = "android"
    LINUX = "linux"
    WINDOWS = "windows"


class Arch(StrEnum):
    """Its CPU. x86_64 is the development machine: there the HTP is emulated."""

    AARCH64 = "aarch64"
    X86_64 = "x86_64"


@dataclass(frozen=True)
class Platform:
    """Where the libraries are to run."""

    os: Os
    arch: Arch

    def __str__(self) -> str:
        return f"{self.os}-{self.arch}"


class Origin(StrEnum):
    """Who serves a package."""

    PYPI = "pypi"
    MAVEN = "maven"


@dataclass(frozen=True)
class Package:
    """One package to download.

    `name` and `version` are the repository's own; `tag` the wheel's platform tag. `qairt` is the SDK version the
    libraries must have, `build_id` the exact build where it is known. `sha256` and `size` (bytes) pin the download;
    None where nobody has told them. `folder` is where the libraries lie in it, `licences` the texts beside them
    (those that must be there).
    """

    origin: Origin
    name: str
    version: str
    tag: str | None
    qairt: str
    build_id: str | None
    sha256: str | None
    size: int | None
    folder: str
    licences: tuple[str, ...]

    def __str__(self) -> str:
        if self.origin is Origin.PYPI:
            return f"{self.name}=={self.version} ({self.tag})"
        return f"{self.name}:{self.version}"


_WHEEL = "onnxruntime-qnn"
_AAR = "com.qualcomm.qti:qnn-runtime"
_TAGS = {
    Platform(Os.LINUX, Arch.AARCH64): ("manylinux_2_34_aarch64", "onnxruntime_qnn/"),
    Platform(Os.LINUX, Arch.X86_64): ("manylinux_2_35_x86_64", "onnxruntime_qnn/"),
    Platform(Os.WINDOWS, Arch.AARCH64): ("win_arm64", "onnxruntime_qnn/"),
    Platform(Os.WINDOWS, Arch.X86_64): ("win_amd64", "onnxruntime_qnn/libs/amd64/"),
}
_WHEEL_LICENCES = ("onnxruntime_qnn/Qualcomm_LICENSE.pdf", "onnxruntime_qnn/ThirdPartyNotices.txt")
_AAR_LICENCES = ("LICENSE.pdf", "NOTICE.txt")
# (onnxruntime-qnn version, platform tag) → sha256 and size of the cp311 wheel.
WHEEL_PINS = {
    ("2.7.0", "manylinux_2_34_aarch64"): (
        "ad08bbfebd7c07ffe83995418303215f46cb25a89e12676f47ee20c32002eaad",
        86663272,
    ),
    ("2.7.0", "manylinux_2_35_x86_64"): ("c56c01562b8534fe8980cfea4601408d950c065f8251fb862ce82101c52c9849", 98578793),
    ("2.7.0", "win_amd64"): ("92ef39a0241fd941b1cb5285a43b8643e3515626eaff7fe7aec186cc9465b411", 195667760),
    ("2.7.0", "win_arm64"): ("b919227025f1feb0d2c5cc4232951de22f738b80995e9d4f2af79c3b66e3c95d", 62290858),
    ("2.6.0", "manylinux_2_34_aarch64"): ("189544b5e51ba4d3b3354b4e938f396a83dd833aba33e59d9f9486171ef8105c", 82232800),
    ("2.6.0", "manylinux_2_35_x86_64"): ("33d8f910031b22b08792d706121caee5b4094b3262c0b31e1c2dab8124268897", 95339369),
    ("2.6.0", "win_amd64"): ("f1b95930769e1632d0d49826374ba097eb455ecda135be7439b052d27919b7f9", 189617339),
    ("2.6.0", "win_arm64"): ("1008a2571f39ce1b447a20bbe9f6065634e4ed5633c7c70ed30b7c8995a74cc6", 59225756),
    ("2.5.0", "manylinux_2_34_aarch64"): ("a108713fc4636793307b665f4fb676c900f8c86e00fabbda364ecb368e6c4b5f", 77346612),
    ("2.5.0", "manylinux_2_35_x86_64"): ("6a6a8db1e36584b4ac2e5ba356f4943b1916303b7f1fd44e27f4ca056f145dfe", 90007642),
    ("2.5.0", "win_amd64"): ("f2692ea6907c8a745ee7bb491f087dee10587078221cc6c927913891ae6cd73f", 178952651),
    ("2.5.0", "win_arm64"): ("fcd44443a89835bf7f52339ad2050803a7e2a3e1b304fce9053cc1a05c99c656", 55759491),
    ("2.4.0", "manylinux_2_34_aarch64"): ("3bdf402cd3d4348aa5798f580fab9832663d10a6e9118339c86b72408f68905e", 77689893),
    ("2.4.0", "manylinux_2_35_x86_64"): ("4c0061ac12d0936f98fe252a24099e6db6fffa62c14fa9c725e001a4147471ee", 91370340),
    ("2.4.0", "win_amd64"): ("7eace2d33669c19c46c180fc1ad02dda3a933da5602d5866cc0ba042ca73bf11", 184236742),
    ("2.4.0", "win_arm64"): ("9fb6b331c20b28392aa32b386f54078fb282c310597bf9d8025df3e59d9a3271", 57146562),
}
# AAR version → sha256 and size, as public projects report them. 2.49.0 exists, but nobody tells its sha256.
AAR_PINS = {
    "2.50.0": ("b507656e4031d8aa6a7ab0fecf725b941096737ad7440ad7ea288f7c9cc9d743", 71270746),
    "2.48.0": ("ef47797c557e124e18eeea32c8cd2e346233d2d28a69f85e22da9fb0b639de06", 68393877),
}
_SHORT = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_FULL = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")


def find_package(platform: Platform, toolchain: str | None, installed: str | None, sha256: str | None) -> Package:
    """The package for a platform.

    `toolchain` is a QAIRT version, short (2.51) or full (2.50.40); None means that of the `installed` onnxruntime-qnn
    (its own version, None if there is none) if it is a known one, else the newest. `sha256` (64 hex digits) takes the
    place of the pinned digest. Raises NoSuchLibraries (QF770) for a version that no package is known to hold, and for
    a platform that has none.
    """
    package = _aar(toolchain, installed) if platform.os is Os.ANDROID else _wheel(platform, toolchain, installed)
    return package if sha256 is None else replace(package, sha256=sha256.lower(), size=None)


def qairt_of(build_id: str) -> str:
    """``v2.51.0.260929181845`` → ``2.51.0``."""
    return build_id.removeprefix("v").rpartition(".")[0]


def _wheel(platform: Platform, toolchain: str | None, installed: str | None) -> Package:
    tag, folder = _TAGS[platform]
    version = _wheel_version(toolchain, installed)
    build = KNOWN_BUILDS[version]
    sha256, size = WHEEL_PINS[version, tag]
    return Package(Origin.PYPI, _WHEEL, version, tag, qairt_of(build), build, sha256, size, folder, _WHEEL_LICENCES)


def _wheel_version(toolchain: str | None, installed: str | None) -> str:
    if toolchain is None:
        return installed if installed in KNOWN_BUILDS else next(iter(KNOWN_BUILDS))
    for version, build in KNOWN_BUILDS.items():
        qairt = qairt_of(build)
        if toolchain == qairt or (_SHORT.fullmatch(toolchain) and qairt.startswith(f"{toolchain}.")):
            return version
    known = ", ".join(f"{qairt_of(build)} ({_WHEEL} {version})" for version, build in KNOWN_BUILDS.items())
    raise NoSuchLibraries(
        f"no {_WHEEL} wheel with the libraries of QAIRT {toolchain} is known",
        remedy="ask for one of the known versions, as --toolchain 2.51",
        details=(f"known: {known}",),
    )


def _aar(toolchain: str | None, installed: str | None) -> Package:
    if toolchain is None:
        toolchain = ".".join(qairt_of(KNOWN_BUILDS[_wheel_version(None, installed)]).split(".")[:2])
    # Maven Central has 2.48.0, 2.49.0 and 2.50.0, never the .40 that the wheels of the same minor version hold.
    version = f"{toolchain}.0" if _SHORT.fullmatch(toolchain) else toolchain
    if not _FULL.fullmatch(version) or _numbers(version) < _numbers(OLDEST):
        raise NoSuchLibraries(
            f"{toolchain!r} is no QAIRT version of {OLDEST} or newer",
            remedy=f"give a version of {_AAR}, as --toolchain 2.50 or --toolchain 2.50.0",
        )
    sha256, size = AAR_PINS.get(version, (None, None))
    return Package(Origin.MAVEN, _AAR, version, None, version, None, sha256, size, "jni/arm64-v8a/", _AAR_LICENCES)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def newer_wheel(package: Package) -> str | None:
    """The QAIRT version of the wheel of the same minor version, where it is newer than this AAR; else None.

    A runtime refuses context binaries of a newer QAIRT, so what that wheel compiles may not load with this package.
    """
    if package.origin is not Origin.MAVEN:
        return None
    minor = _numbers(package.qairt)[:2]
    for build in KNOWN_BUILDS.values():
        qairt = qairt_of(build)
        if _numbers(qairt)[:2] == minor and _numbers(qairt) > _numbers(package.qairt):
            return qairt
    return None
