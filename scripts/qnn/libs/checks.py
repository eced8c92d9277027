"""Whether files taken from a package make one working set. Pure: facts in, an error or nothing out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qnn.errors.libs import MixedVersions, NeedUnmet, PagesTooSmall, WrongMachine, WrongSkel
from qnn.libs.image import Image
from qnn.libs.packages import Os, Package, Platform, qairt_of
from qnn.libs.wanted import Role, Wanted, provider

PAGE_16K = 16 << 10
# These carry the build they are of; System carries none in the packages for Linux.
_DATED = frozenset({Role.BACKEND, Role.STUB, Role.SKEL, Role.PREPARE})
_AGAIN = "remove the download and get the package again"


@dataclass(frozen=True)
class Library:
    """One library of a set and what it says of itself."""

    wanted: Wanted
    image: Image

    @property
    def name(self) -> str:
        """Its file name."""
        return self.wanted.target.rpartition("/")[2]


def check_set(libraries: Sequence[Library], platform: Platform, package: Package, *, pages: int) -> str:
    """The build id that all libraries share, if they make one set for the platform.

    `pages` is the least alignment of LOAD segments on Android, in bytes. Raises WrongMachine (QF776), WrongSkel
    (QF775), MixedVersions (QF774), NeedUnmet (QF777) and PagesTooSmall (QF778), in this order.
    """
    for library in libraries:
        _check_machine(library, platform)
    build = _one_build(libraries, package)
    _check_needs(libraries, platform)
    if platform.os is Os.ANDROID:
        _check_pages(libraries, pages)
    return build


def check_catalogue(name: str, catalogue: bytes, skel: str, sha256: str) -> None:
    """Whether a Windows catalogue signs a Skel: the Skel's sha256 (hex) stands in it, as 32 bytes.

    That was so in all eight catalogues of onnxruntime-qnn 2.4.0 to 2.7.0. Raises MixedVersions (QF774).
    """
    if bytes.fromhex(sha256) not in catalogue:
        raise MixedVersions(
            f"{name} is not the signature of {skel} beside it: Windows would not load that Skel",
            remedy=_AGAIN,
        )


def _check_machine(library: Library, platform: Platform) -> None:
    image, hexagon = library.image, library.wanted.hexagon
    expected = "hexagon" if library.wanted.role is Role.SKEL else str(platform.arch)
    kind = "pe" if platform.os is Os.WINDOWS and library.wanted.role is not Role.SKEL else "elf"
    if (image.machine, image.format) != (expected, kind):
        raise WrongMachine(
            f"{library.name} is for {image.machine} ({image.format.upper()}), not for {expected} ({kind.upper()})",
            remedy=_AGAIN,
        )
    if image.hexagon != hexagon:
        raise WrongSkel(f"{library.name} is made for Hexagon {image.hexagon}, not {hexagon}", remedy=_AGAIN)


def _one_build(libraries: Sequence[Library], package: Package) -> str:
    details = tuple(f"{library.name}: {', '.join(library.image.builds) or 'no build id'}" for library in libraries)
    undated = [library.name for library in libraries if library.wanted.role in _DATED and not library.image.builds]
    if undated:
        raise MixedVersions(f"{', '.join(undated)} does not say of which QAIRT it is", remedy=_AGAIN, details=details)
    builds = sorted({build for library in libraries for build in library.image.builds})
    if len(builds) != 1:
        raise MixedVersions(f"{package} holds libraries of {' and '.join(builds)}", remedy=_AGAIN, details=details)
    if builds[0] != (package.build_id or builds[0]) or qairt_of(builds[0]) != package.qairt:
        raise MixedVersions(
            f"{package} holds libraries of {builds[0]}, not of {package.build_id or package.qairt}",
            remedy=_AGAIN,
            details=details,
        )
    return builds[0]


def _check_needs(libraries: Sequence[Library], platform: Platform) -> None:
    names = _names(libraries)
    for library in libraries:
        for need in library.image.needed:
            if need.casefold() not in names and provider(platform.os, library.image.machine, need) is None:
                raise NeedUnmet(
                    f"{library.name} needs {need}, which is neither in the set nor known to be on the system",
                    remedy="get the package again, or take another --toolchain; if your systems have it, tell us",
                )


def _names(libraries: Sequence[Library]) -> set[str]:
    """What the set brings. Windows does not tell upper from lower case; elsewhere no two names differ only in it."""
    return {library.name.casefold() for library in libraries}


def outside_needs(libraries: Sequence[Library], platform: Platform) -> tuple[tuple[str, str], ...]:
    """Libraries that others must bring, with who does, by name; without those of the DSP."""
    names = _names(libraries)
    found: dict[str, str] = {}
    for library in libraries:
        for need in library.image.needed:
            who = provider(platform.os, library.image.machine, need)
            if need.casefold() not in names and library.image.machine != "hexagon" and who is not None:
                found[need] = who
    return tuple(sorted(found.items()))


def _check_pages(libraries: Sequence[Library], pages: int) -> None:
    small = [
        f"{library.name}: {library.image.alignment} bytes"
        for library in libraries
        if library.image.machine != "hexagon" and (library.image.alignment or 0) < pages
    ]
    if small:
        raise PagesTooSmall(
            f"{len(small)} of the libraries are not aligned for pages of {pages >> 10} KB",
            remedy="take a newer --toolchain; for devices with 4 KB pages only add --allow-4k-pages",
            details=small,
        )
