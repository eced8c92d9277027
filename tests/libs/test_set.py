"""Which files make a set, and what is refused of one: each fault is its own error."""

from __future__ import annotations

import dataclasses

import pytest

from qnn.errors.base import ForgeError
from qnn.errors.libs import (
    ArchNotServed,
    MixedVersions,
    NeedUnmet,
    NotTheOfficialPackage,
    PagesTooSmall,
    WrongMachine,
    WrongSkel,
)
from qnn.libs.checks import Library, check_set, outside_needs
from qnn.libs.image import image
from qnn.libs.packages import Arch, Os, Package, Platform, find_package
from qnn.libs.wanted import Role, Wanted, provider, wanted_files
from tests.libs import fake_maven
from tests.libs.fake_images import BUILD, PE_AMD64, X86_64, elf, pe, skel

ANDROID = Platform(Os.ANDROID, Arch.AARCH64)
WINDOWS = Platform(Os.WINDOWS, Arch.AARCH64)
HOST = Platform(Os.LINUX, Arch.X86_64)
AAR = find_package(ANDROID, "2.50", None, None)
_WHEEL = ("onnxruntime_qnn/Qualcomm_LICENSE.pdf", "onnxruntime_qnn/ThirdPartyNotices.txt")


def targets(found: tuple[Wanted, ...]) -> list[str]:
    return [one.target for one in found]


def test_android_takes_only_what_the_chip_needs() -> None:
    found = wanted_files(ANDROID, AAR, [*fake_maven.libraries(), "LICENSE.pdf", "NOTICE.txt"], ["v75"], prepare=False)
    assert targets(found) == [
        *("lib/libQnnHtp.so", "lib/libQnnHtpV75Skel.so", "lib/libQnnHtpV75Stub.so", "lib/libQnnSystem.so"),
        *("licences/LICENSE.pdf", "licences/NOTICE.txt"),
    ]
    assert [one.hexagon for one in found if one.role is Role.SKEL] == ["v75"]


def test_two_chips_and_prepare() -> None:
    found = wanted_files(
        ANDROID, AAR, [*fake_maven.libraries(), "LICENSE.pdf", "NOTICE.txt"], ["v75", "v73", "v75"], prepare=True
    )
    assert [one.target for one in found if one.role in (Role.SKEL, Role.PREPARE)] == [
        *("lib/libQnnHtpPrepare.so", "lib/libQnnHtpV73Skel.so", "lib/libQnnHtpV75Skel.so"),
    ]


def windows_members(*numbers: int) -> list[str]:
    names = [*_WHEEL, "onnxruntime_qnn/QnnSystem.dll", "onnxruntime_qnn/QnnHtp.dll"]
    for number in numbers:
        names += [f"onnxruntime_qnn/QnnHtpV{number}Stub.dll", f"onnxruntime_qnn/libQnnHtpV{number}Skel.so"]
    return [*names, "onnxruntime_qnn/libqnnhtpv73.cat"]


@pytest.mark.parametrize(("hexagon", "catalogues"), [("v73", ["lib/libqnnhtpv73.cat"]), ("v68", [])])
def test_windows_takes_the_catalogue_of_a_skel_where_there_is_one(hexagon: str, catalogues: list[str]) -> None:
    package = find_package(WINDOWS, None, None, None)
    found = wanted_files(WINDOWS, package, windows_members(68, 73), [hexagon], prepare=False)
    assert [one.target for one in found if one.role is Role.CATALOGUE] == catalogues


def test_a_chip_the_package_does_not_serve() -> None:
    package = find_package(WINDOWS, None, None, None)
    with pytest.raises(ArchNotServed, match="v75; it has those for v68, v73"):
        wanted_files(WINDOWS, package, windows_members(68, 73), ["v75"], prepare=False)


def test_a_development_machine_has_no_skel_but_what_the_wheel_brings_along() -> None:
    package = find_package(HOST, None, None, None)
    brought = ["onnxruntime_qnn.libs/libc++-71bc274c.so.1.0", "onnxruntime_qnn.libs/../../x.so", "other.libs/y.so"]
    members = [*_WHEEL, "onnxruntime_qnn/libQnnSystem.so", "onnxruntime_qnn/libQnnHtp.so", *brought]
    found = wanted_files(HOST, package, [*members, "onnxruntime_qnn/libHtpPrepare.so"], ["v85"], prepare=True)
    assert targets(found) == [
        *("lib/libHtpPrepare.so", "lib/libQnnHtp.so", "lib/libQnnSystem.so"),
        *("licences/Qualcomm_LICENSE.pdf", "licences/ThirdPartyNotices.txt"),
        "onnxruntime_qnn.libs/libc++-71bc274c.so.1.0",
    ]


@pytest.mark.parametrize("missing", ["LICENSE.pdf", "jni/arm64-v8a/libQnnHtp.so", "jni/arm64-v8a/libQnnSystem.so"])
def test_a_package_that_lacks_something(missing: str) -> None:
    members = {*fake_maven.libraries(), "LICENSE.pdf", "NOTICE.txt"} - {missing}
    with pytest.raises(NotTheOfficialPackage, match=f"lacks {missing}"):
        wanted_files(ANDROID, AAR, sorted(members), ["v75"], prepare=False)


def test_providers() -> None:
    assert provider(Os.WINDOWS, "aarch64", "API-MS-WIN-core-file-l1-1-0.dll") == "Windows"
    assert provider(Os.WINDOWS, "aarch64", "libcdsprpc.dll") == "the NPU's driver"
    assert provider(Os.LINUX, "aarch64", "libc.so") is None
    assert provider(Os.ANDROID, "aarch64", "libc.so") == "Android"
    assert provider(Os.ANDROID, "hexagon", "liblog.so") is None


def library(role: Role, name: str, data: bytes, hexagon: str | None = None) -> Library:
    return Library(Wanted(f"x/{name}", f"lib/{name}", role, hexagon), image(data))


def good_set() -> dict[str, Library]:
    return {
        "system": library(Role.SYSTEM, "libQnnSystem.so", elf(needed=fake_maven.ANDROID, text=b"")),
        "htp": library(Role.BACKEND, "libQnnHtp.so", elf(needed=("libc.so", "libQnnSystem.so"))),
        "stub": library(Role.STUB, "libQnnHtpV75Stub.so", elf(needed=("libcdsprpc.so",))),
        "skel": library(Role.SKEL, "libQnnHtpV75Skel.so", skel(75), "v75"),
    }


def check(changes: dict[str, Library], platform: Platform = ANDROID, package: Package = AAR) -> str:
    return check_set(tuple({**good_set(), **changes}.values()), platform, package, pages=16384)


def test_a_good_set() -> None:
    assert check({}) == BUILD
    assert outside_needs(tuple(good_set().values()), ANDROID) == (
        *(
            ("libc.so", "Android"),
            ("libcdsprpc.so", "the device; the app's manifest must name it in <uses-native-library>"),
        ),
        *(("libdl.so", "Android"), ("liblog.so", "Android"), ("libm.so", "Android")),
    )


OTHER = b"v2.51.0.260929181845"


@pytest.mark.parametrize(
    ("part", "changed", "error", "says"),
    [
        ("skel", library(Role.SKEL, "libQnnHtpV75Skel.so", skel(75, flags=0x73), "v75"), WrongSkel, "v73, not v75"),
        (
            "skel",
            library(Role.SKEL, "libQnnHtpV75Skel.so", elf(), "v75"),
            WrongMachine,
            "aarch64 .ELF., not for hexagon",
        ),
        ("htp", library(Role.BACKEND, "libQnnHtp.so", elf(machine=X86_64)), WrongMachine, "x86_64 .ELF., not"),
        ("htp", library(Role.BACKEND, "libQnnHtp.so", skel(75)), WrongMachine, "hexagon .ELF., not"),
        ("htp", library(Role.BACKEND, "libQnnHtp.so", pe()), WrongMachine, r"for aarch64 \(PE\), not"),
        ("stub", library(Role.STUB, "libQnnHtpV75Stub.so", elf(text=OTHER)), MixedVersions, "v2.50.0.* and v2.51.0"),
        ("skel", library(Role.SKEL, "a.so", skel(75, text=b""), "v75"), MixedVersions, "does not say"),
        ("system", library(Role.SYSTEM, "libQnnSystem.so", elf(text=OTHER)), MixedVersions, "and v2.51.0"),
        ("htp", library(Role.BACKEND, "libQnnHtp.so", elf(needed=("libQnnIr.so",))), NeedUnmet, "needs libQnnIr.so"),
        (
            "skel",
            library(Role.SKEL, "s.so", elf(machine=164, flags=0x75, needed=("liblog.so",)), "v75"),
            NeedUnmet,
            "liblog",
        ),
        ("htp", library(Role.BACKEND, "libQnnHtp.so", elf(alignment=4096)), PagesTooSmall, "1 of the libraries"),
    ],
)
def test_what_makes_a_set_bad(part: str, changed: Library, error: type[ForgeError], says: str) -> None:
    with pytest.raises(error, match=says):
        check({part: changed})


def test_a_set_of_another_version_than_its_package() -> None:
    package = dataclasses.replace(AAR, qairt="2.51.0")
    with pytest.raises(MixedVersions, match=r"of v2\.50\.0\.260828221209, not of 2\.51\.0"):
        check({}, package=package)


def test_a_set_of_another_build_than_the_known_one() -> None:
    package = dataclasses.replace(AAR, build_id="v2.50.0.111111111111")
    with pytest.raises(MixedVersions, match=r"not of v2\.50\.0\.111111111111"):
        check({}, package=package)


def test_small_pages_may_be_allowed() -> None:
    small = library(Role.BACKEND, "libQnnHtp.so", elf(alignment=4096))
    assert check_set((*good_set().values(), small), ANDROID, AAR, pages=4096) == BUILD


def test_windows_names_have_no_case() -> None:
    package = dataclasses.replace(find_package(WINDOWS, None, None, None), qairt="2.50.0", build_id=None)
    files = (
        library(Role.BACKEND, "QnnHtp.dll", pe(needed=("QNNSYSTEM.dll", "kernel32.DLL"))),
        library(Role.SYSTEM, "QnnSystem.dll", pe(text=b"")),
        library(Role.SKEL, "libQnnHtpV73Skel.so", skel(73), "v73"),
    )
    assert check_set(files, WINDOWS, package, pages=16384) == BUILD
    assert outside_needs(files, WINDOWS) == (("KERNEL32.dll", "Windows"), ("kernel32.DLL", "Windows"))
    foreign = (library(Role.BACKEND, "QnnHtp.dll", pe(machine=PE_AMD64)),)
    with pytest.raises(WrongMachine, match=r"for x86_64 \(PE\), not for aarch64 \(PE\)"):
        check_set(foreign, WINDOWS, package, pages=16384)
