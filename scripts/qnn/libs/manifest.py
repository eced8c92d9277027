"""manifest.json of a set of runtime libraries. Deterministic: no clock, no path of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qnn.chips.soc import Soc
from qnn.libs.checks import PAGE_16K, Library
from qnn.libs.fetch import Assurance
from qnn.libs.packages import Arch, Origin, Os, Package, Platform, newer_wheel
from qnn.libs.wanted import Role, Wanted

SCHEMA_VERSION = 1
TERMS = (
    "Qualcomm's licence (in licences/) allows distributing these libraries in object code only as incorporated in an "
    "application, not on their own: do not publish this archive, nor an image that contains it."
)


@dataclass(frozen=True)
class PackedFile:
    """One file of a set: what it is, and its digest. `library` is None for texts and catalogues."""

    wanted: Wanted
    size: int
    sha256: str
    library: Library | None


@dataclass(frozen=True)
class LibrarySet:
    """A checked set. `outside` are libraries that others must bring, with who does."""

    platform: Platform
    chips: tuple[Soc, ...]
    package: Package
    sha256: str
    size: int
    assurance: Assurance
    build_id: str
    files: tuple[PackedFile, ...]
    outside: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The archive's name without its suffixes, and its one top folder."""
        return archive_name(self.package, self.platform)


def archive_name(package: Package, platform: Platform) -> str:
    """``qnn-libs-<qairt>-<os>-<arch>``."""
    return f"qnn-libs-{package.qairt}-{platform}"


def notes(platform: Platform, package: Package, assurance: Assurance | None) -> tuple[str, ...]:
    """What a user should know about such a set and would not see in it. `assurance` is None before a download."""
    found = []
    if platform == Platform(Os.LINUX, Arch.X86_64):
        found.append(
            "on linux x86_64 there is no NPU, so there is no Skel and no Stub, whatever the chip: libQnnHtp.so "
            "compiles and emulates"
        )
    elif platform.arch is Arch.X86_64:
        found.append(
            "on windows x86_64 there is no NPU, so there is no Skel and no Stub, whatever the chip: QnnHtp.dll is the "
            "build for development machines"
        )
    newer = newer_wheel(package)
    if newer is not None:
        found.append(
            f"what onnxruntime-qnn compiles with QAIRT {newer} is newer than this runtime, {package.qairt}, which may "
            "refuse it; take the next --toolchain for such context binaries"
        )
    if assurance in (Assurance.REPOSITORY_SHA1, Assurance.REPOSITORY_SHA256):
        found.append(
            f"no digest of {package} is known here; it was held only against the {assurance}, which says that the "
            "download is whole, not who made it; compare it and give it with --sha256"
        )
    return tuple(found)


def document(made: LibrarySet) -> dict[str, object]:
    """The manifest as JSON takes it. Sizes and alignments in bytes."""
    package, platform = made.package, made.platform
    return {
        "schema": SCHEMA_VERSION,
        "kind": "qnn-libs",
        "name": made.name,
        "qairt": package.qairt,
        "build_id": made.build_id,
        "os": str(platform.os),
        "arch": str(platform.arch),
        "npu": platform.arch is not Arch.X86_64,
        "chips": [{"name": chip.name, "soc_id": chip.soc_id, "arch": chip.arch} for chip in made.chips],
        "package": {
            "repository": "PyPI" if package.origin is Origin.PYPI else "Maven",
            "name": package.name,
            "version": package.version,
            "platform": package.tag,
            "sha256": made.sha256,
            "size": made.size,
            "checked_against": str(made.assurance),
        },
        "licence": {
            "terms": TERMS,
            "files": [file.wanted.target for file in made.files if file.wanted.role is Role.LICENCE],
        },
        "files": [_file(file) for file in made.files],
        "needs_from_outside": [{"library": name, "from": who} for name, who in made.outside],
        "notes": list(notes(platform, package, made.assurance)),
    }


def _file(file: PackedFile) -> dict[str, object]:
    entry: dict[str, object] = {
        "path": file.wanted.target,
        "role": str(file.wanted.role),
        "size": file.size,
        "sha256": file.sha256,
    }
    if file.library is not None:
        image = file.library.image
        entry["image"] = {
            "format": image.format,
            "machine": image.machine,
            "bits": image.bits,
            "hexagon": image.hexagon,
            "own_name": image.own_name,
            "needed": list(image.needed),
            "load_alignment": image.alignment,
            # Of what the CPU's loader maps; a Skel is loaded by the DSP.
            "pages_16k": None if image.alignment is None or image.hexagon else image.alignment >= PAGE_16K,
            "build_ids": list(image.builds),
        }
    return entry


def libraries_of(files: Sequence[PackedFile]) -> tuple[Library, ...]:
    """The libraries among the files."""
    return tuple(file.library for file in files if file.library is not None)
