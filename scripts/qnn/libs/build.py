"""From a package to a checked, deterministic archive. The shell around wanted, checks and manifest."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.bundle.archive import write_archive
from qnn.chips.soc import Soc
from qnn.errors.libs import DamagedLibrary, NotTheOfficialPackage, OtherSetThere
from qnn.libs.checks import Library, check_catalogue, check_set, outside_needs
from qnn.libs.fetch import Depot, Obtained
from qnn.libs.image import read_image
from qnn.libs.manifest import LibrarySet, PackedFile, document, libraries_of
from qnn.libs.packages import Package, Platform
from qnn.libs.raw import ImageError
from qnn.libs.wanted import Role, Wanted, wanted_files

_CHUNK = 1 << 20
# The largest library is 190 MB; what unpacks to more than this is none.
_MOST_BYTES = 1 << 30
_MOST_MEMBERS = 10_000


@dataclass(frozen=True)
class Request:
    """What is asked for. `pages` is the least alignment of LOAD segments on Android, in bytes."""

    platform: Platform
    chips: tuple[Soc, ...]
    package: Package
    prepare: bool
    pages: int


@dataclass(frozen=True)
class Built:
    """An archive in the output folder; `fresh` is False where it was there already, byte for byte."""

    archive: Path
    sha256: str
    size: int
    made: LibrarySet
    fresh: bool


def build_libraries(request: Request, depot: Depot, folder: Path) -> Built:
    """Make ``qnn-libs-<qairt>-<os>-<arch>.tar.gz`` in `folder`, which is made where missing.

    The archive appears whole or not at all. Raises what Depot.package, wanted_files and check_set raise, and
    NotTheOfficialPackage (QF773) for a package that is no zip, DamagedLibrary (QF779), OtherSetThere (QF771), OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".qnn-libs-", dir=folder) as scratch:
        content = Path(scratch) / "content"
        with depot.package(request.package) as obtained:
            files = _unpack(request, obtained, content)
        libraries = libraries_of(files)
        _check_catalogues(files, content)
        build_id = check_set(libraries, request.platform, request.package, pages=request.pages)
        made = LibrarySet(
            platform=request.platform,
            chips=tuple(sorted(set(request.chips), key=lambda chip: chip.name)),
            package=request.package,
            sha256=obtained.sha256,
            size=obtained.size,
            assurance=obtained.assurance,
            build_id=build_id,
            files=files,
            outside=outside_needs(libraries, request.platform),
        )
        text = json.dumps(document(made), indent=2, sort_keys=True) + "\n"
        (content / "manifest.json").write_text(text, encoding="utf-8")
        archive = Path(scratch) / "archive"
        write_archive(content, made.name, archive)
        return _install(archive, folder / f"{made.name}.tar.gz", made)


def _unpack(request: Request, obtained: Obtained, content: Path) -> tuple[PackedFile, ...]:
    try:
        with zipfile.ZipFile(obtained.path) as packed:
            names = packed.namelist()
            if len(names) > _MOST_MEMBERS:
                raise NotTheOfficialPackage(f"{request.package} holds {len(names)} files", remedy=_AGAIN)
            hexagons = {chip.arch for chip in request.chips}
            wanted = wanted_files(request.platform, request.package, names, hexagons, prepare=request.prepare)
            return tuple(_unpack_one(packed, one, content) for one in wanted)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        # NotImplementedError and RuntimeError: zipfile's words for other compressions and for encrypted members.
        raise NotTheOfficialPackage(f"{request.package} cannot be unpacked: {error}", remedy=_AGAIN) from None


def _unpack_one(packed: zipfile.ZipFile, wanted: Wanted, content: Path) -> PackedFile:
    target = content / wanted.target
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with packed.open(wanted.member) as source, target.open("xb") as out:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > _MOST_BYTES:
                raise DamagedLibrary(f"{wanted.member} unpacks to more than {_MOST_BYTES} bytes", remedy=_AGAIN)
            digest.update(chunk)
            out.write(chunk)
    library = None
    if wanted.role not in (Role.LICENCE, Role.CATALOGUE):
        try:
            library = Library(wanted, read_image(target))
        except ImageError as error:
            raise DamagedLibrary(f"{wanted.member}: {error}", remedy=_AGAIN) from None
    return PackedFile(wanted, size, digest.hexdigest(), library)


def _check_catalogues(files: Sequence[PackedFile], content: Path) -> None:
    skels = {file.wanted.hexagon: file for file in files if file.wanted.role is Role.SKEL}
    for file in files:
        if file.wanted.role is Role.CATALOGUE:
            skel = skels[file.wanted.hexagon]
            text = (content / file.wanted.target).read_bytes()
            check_catalogue(file.wanted.target, text, skel.wanted.target, skel.sha256)


def _install(archive: Path, target: Path, made: LibrarySet) -> Built:
    sha256, size = _sha256(archive), archive.stat().st_size
    if target.exists():
        if _sha256(target) != sha256:
            raise OtherSetThere(
                f"{target} is there already, with something else in it",
                remedy="name all chips in one call, give another --out, or remove it",
            )
        return Built(target, sha256, size, made, fresh=False)
    os.replace(archive, target)
    return Built(target, sha256, size, made, fresh=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def chips_label(chips: Sequence[Soc]) -> str:
    """Chips as a person reads them: SM8650 (v75), SM8750 (v79)."""
    return ", ".join(f"{chip.name} ({chip.arch})" for chip in chips)


_AGAIN = "remove the download (qnn-forge store prune --side) and get it again"
