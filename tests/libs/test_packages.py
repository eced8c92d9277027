"""Which package serves a platform and a QAIRT version."""

from __future__ import annotations

import pytest

from qnn.errors.libs import NoSuchLibraries
from qnn.libs.packages import (
    AAR_PINS,
    WHEEL_PINS,
    Arch,
    Os,
    Platform,
    find_package,
    newer_wheel,
    qairt_of,
)
from qnn.toolchains.pip.toolchain import KNOWN_BUILDS

LINUX = Platform(Os.LINUX, Arch.AARCH64)
ANDROID = Platform(Os.ANDROID, Arch.AARCH64)


@pytest.mark.parametrize(
    ("platform", "tag", "folder"),
    [
        (LINUX, "manylinux_2_34_aarch64", "onnxruntime_qnn/"),
        (Platform(Os.LINUX, Arch.X86_64), "manylinux_2_35_x86_64", "onnxruntime_qnn/"),
        (Platform(Os.WINDOWS, Arch.AARCH64), "win_arm64", "onnxruntime_qnn/"),
        (Platform(Os.WINDOWS, Arch.X86_64), "win_amd64", "onnxruntime_qnn/libs/amd64/"),
    ],
)
def test_the_wheel_of_each_platform(platform: Platform, tag: str, folder: str) -> None:
    package = find_package(platform, "2.49", None, None)
    assert (package.version, package.tag, package.folder) == ("2.5.0", tag, folder)
    assert (package.qairt, package.build_id) == ("2.49.40", "v2.49.40.260810104044")
    assert (package.sha256, package.size) == WHEEL_PINS["2.5.0", tag]


@pytest.mark.parametrize(
    ("toolchain", "installed", "version"),
    [
        (None, None, "2.7.0"),
        (None, "2.4.0", "2.4.0"),
        (None, "9.9.9", "2.7.0"),
        ("2.50", "2.4.0", "2.6.0"),
        ("2.50.40", None, "2.6.0"),
        ("2.51.0", None, "2.7.0"),
    ],
)
def test_the_version_of_a_wheel(toolchain: str | None, installed: str | None, version: str) -> None:
    assert find_package(LINUX, toolchain, installed, None).version == version


@pytest.mark.parametrize("toolchain", ["2.47", "2.50.0", "2.5", "2.7.0", "2", "", "newest", "2.51.0.1"])
def test_a_version_no_wheel_holds(toolchain: str) -> None:
    with pytest.raises(NoSuchLibraries) as caught:
        find_package(LINUX, toolchain, None, None)
    assert "2.48.40 (onnxruntime-qnn 2.4.0)" in caught.value.details[0]


@pytest.mark.parametrize(
    ("toolchain", "installed", "version"),
    [(None, None, "2.51.0"), (None, "2.6.0", "2.50.0"), ("2.50", None, "2.50.0"), ("2.52.3", None, "2.52.3")],
)
def test_the_version_of_an_aar(toolchain: str | None, installed: str | None, version: str) -> None:
    package = find_package(ANDROID, toolchain, installed, None)
    assert (package.version, package.qairt, package.build_id) == (version, version, None)
    assert (package.sha256, package.size) == AAR_PINS.get(version, (None, None))


@pytest.mark.parametrize(
    "toolchain", ["2.47", "1.99.0", "2", "2.50.0/../..", "2.x", "2.50.0-beta", "²", "٢.٥٠", "2.50\n"]
)
def test_what_is_no_version_of_an_aar(toolchain: str) -> None:
    with pytest.raises(NoSuchLibraries):
        find_package(ANDROID, toolchain, None, None)


def test_a_digest_of_ones_own_takes_the_place_of_the_pin() -> None:
    package = find_package(LINUX, None, None, "AB" * 32)
    assert (package.sha256, package.size) == ("ab" * 32, None)


def test_an_aar_may_be_older_than_the_wheel_of_its_minor_version() -> None:
    assert newer_wheel(find_package(ANDROID, "2.50", None, None)) == "2.50.40"
    assert newer_wheel(find_package(ANDROID, "2.51", None, None)) is None
    assert newer_wheel(find_package(LINUX, "2.50", None, None)) is None


def test_every_known_wheel_is_pinned_for_every_platform() -> None:
    tags = {tag for _, tag in WHEEL_PINS}
    assert set(WHEEL_PINS) == {(version, tag) for version in KNOWN_BUILDS for tag in tags}
    assert len(tags) == 4
    assert len({sha256 for sha256, _ in WHEEL_PINS.values()}) == len(WHEEL_PINS)


def test_the_known_builds_are_newest_first() -> None:
    versions = [[int(part) for part in qairt_of(build).split(".")] for build in KNOWN_BUILDS.values()]
    assert versions == sorted(versions, reverse=True)
