"""Reading what a build left: every archive opened, held against its own manifest and read back. Nothing is run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.build.install import ARCHIVE_SUFFIX
from qnn.bundle.manifest import Manifest, ManifestOutput
from qnn.bundle.recheck import MANIFEST, check_files, opened_bundle, read_back, read_manifest
from qnn.child import Host
from qnn.errors.base import ForgeError, Place
from qnn.errors.publish import ArchiveDiffers, NothingToPublish, NotVerified, RuntimeLibrary
from qnn.libs.recognise import HEAD_BYTES, is_qairt_library
from qnn.publish.licences import require_redistribution
from qnn.publish.target import LocalFile, Unit
from qnn.store import file_digest
from qnn.toolchains.protocol import Toolchain

_BUILD_AGAIN = "build again into an empty folder and publish that"


@dataclass(frozen=True)
class Bundle:
    """An archive that may be published, and the manifest inside it."""

    file: LocalFile
    manifest: Manifest

    @property
    def unit(self) -> Unit:
        """What it is published with."""
        return Unit(self.manifest.model.name, self.manifest.model.version)


@dataclass(frozen=True)
class Checker:
    """What accepting needs: the toolchain that reads binaries back, a child to do it in, a log, the build's results
    (archive name → sha256), and whether QAIRT's own libraries may go out.
    """

    toolchain: Toolchain
    host: Host
    log: Path
    results: Mapping[str, str]
    libraries: bool


def find_archives(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Every bundle archive in the output folders of builds, by name.

    Raises NothingToPublish (QF750), and ArchiveDiffers (QF754) when two folders have different archives of one name.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"*{ARCHIVE_SUFFIX}")):
            if path.name.startswith("."):
                continue
            other = found.setdefault(path.name, path)
            if file_digest(other) != file_digest(path):
                raise ArchiveDiffers(f"{other} and {path} are different archives of one name", remedy=_BUILD_AGAIN)
    if not found:
        names = ", ".join(map(str, folders))
        raise NothingToPublish(
            f"no NAME{ARCHIVE_SUFFIX} in {names}", remedy="give the output folder of qnn-forge build (dist)"
        )
    return tuple(found[name] for name in sorted(found))


def find_results(folders: Sequence[Path], named: Sequence[Path]) -> dict[str, str]:
    """Archive name → sha256 as `qnn-forge build --json` said: from the files named, and from ``results/*.json`` in or
    beside each folder, where the workflows leave them.

    Raises ArchiveDiffers (QF754) for a file named that is no such document, or two that disagree.
    """
    documents = [(path, _digests(path)) for path in named]
    documents += [
        (path, _digests(path))
        for folder in folders
        for place in (folder, folder.absolute().parent)
        for path in sorted(place.glob("results/*.json"))
    ]
    found: dict[str, str] = {}
    for path, digests in documents:
        if digests is None and path in named:
            raise ArchiveDiffers(
                f"{path} is no result of qnn-forge build --json", remedy="give the JSON that the build printed"
            )
        for name, sha256 in (digests or {}).items():
            if found.setdefault(name, sha256) != sha256:
                raise ArchiveDiffers(
                    f"results of two builds disagree on {name}", place=Place(str(path)), remedy=_BUILD_AGAIN
                )
    return found


def _digests(path: Path) -> dict[str, str] | None:
    """What a document says, None when it is something else."""
    try:
        targets = json.loads(path.read_text(encoding="utf-8"))["targets"]
        return {Path(one["archive"]).name: str(one["sha256"]) for one in targets if one["archive"] is not None}
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def accept(archive: Path, checker: Checker) -> Bundle:
    """Open an archive and see whether it may be published.

    Raises QF701 to QF703 for what is no bundle or a damaged one, ArchiveDiffers (QF754), RuntimeLibrary (QF753),
    NotVerified (QF751), LicenceForbids (QF752), and QF600 to QF603 for binaries that do not read back as the manifest
    says.
    """
    sha256 = file_digest(archive)
    expected = checker.results.get(archive.name)
    if expected is not None and expected != sha256:
        raise ArchiveDiffers(
            f"{archive.name} is not the archive that the build made",
            remedy=_BUILD_AGAIN,
            details=(f"the build's sha256 {expected}", f"this file's {sha256}"),
        )
    if not checker.libraries:
        _require_no_libraries(archive, None)
    with opened_bundle(archive) as folder:
        if not checker.libraries:
            _require_no_libraries(archive, folder)
        manifest = read_manifest(folder)
        check_files(folder, manifest)
        _require_names(archive, manifest)
        _require_same_folder(archive, folder)
        _require_verified(manifest)
        require_redistribution(manifest.model.name, manifest.model.licence, manifest.model.licence_reason)
        for graph in manifest.graphs:
            read_back(folder, manifest, graph, checker.toolchain, checker.host, checker.log)
    return Bundle(LocalFile(archive.name, archive, archive.stat().st_size, sha256), manifest)


def accept_all(archives: Iterable[Path], checker: Checker) -> tuple[tuple[Bundle, ...], tuple[ForgeError, ...]]:
    """All bundles that may be published, and one error for each archive that may not."""
    accepted: list[Bundle] = []
    refused: list[ForgeError] = []
    for archive in archives:
        try:
            accepted.append(accept(archive, checker))
        except ForgeError as error:
            refused.append(error)
    return tuple(accepted), tuple(refused)


def _require_names(archive: Path, manifest: Manifest) -> None:
    model = manifest.model
    parts = (model.name, model.version, manifest.bucket, manifest.precision, manifest.chip.name)
    expected = f"{'-'.join(parts)}-qairt{manifest.toolchain.qairt}"
    if not archive.name == f"{manifest.name}{ARCHIVE_SUFFIX}" == f"{expected}{ARCHIVE_SUFFIX}":
        raise ArchiveDiffers(
            f"{archive.name} holds {manifest.name}, which its manifest would name {expected}", remedy=_BUILD_AGAIN
        )


def _require_same_folder(archive: Path, opened: Path) -> None:
    """The folder beside an archive, where there is one, is what a person looked at."""
    beside = archive.with_name(archive.name.removesuffix(ARCHIVE_SUFFIX)) / MANIFEST
    if beside.is_file() and beside.read_bytes() != (opened / MANIFEST).read_bytes():
        raise ArchiveDiffers(f"{archive.name} and the folder beside it are two builds", remedy=_BUILD_AGAIN)


def _require_no_libraries(archive: Path, folder: Path | None) -> None:
    """By the archive's name before it is opened, then by every file in it."""
    found = [archive.name] if is_qairt_library(archive.name, b"") else []
    if folder is not None:
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        found += [path.relative_to(folder).as_posix() for path in files if is_qairt_library(path.name, _head(path))]
    if found:
        raise RuntimeLibrary(
            f"{archive.name} is or holds {len(found)} file(s) that are or may be part of QAIRT",
            remedy="leave them out; app developers make their own with qnn-forge libs",
            details=found[:20],
        )


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(HEAD_BYTES)


def _require_verified(manifest: Manifest) -> None:
    if not manifest.verified or manifest.samples < 1:
        raise NotVerified(
            f"{manifest.name} was not run against the float model",
            remedy="build it with --verify all (the default), and publish that",
        )
    missed = [
        f"{graph.name} {output.name}: {fault}"
        for graph in manifest.graphs
        for output in graph.numerics
        for fault in _missed(output)
    ]
    missed += [f"{graph.name}: no output was measured" for graph in manifest.graphs if not graph.numerics]
    if missed:
        raise NotVerified(
            f"{manifest.name} does not meet its own gates",
            remedy="build it again with --verify all (the default), and publish that",
            details=missed,
        )


def _missed(output: ManifestOutput) -> Iterator[str]:
    """Gates that the manifest's own numbers miss; a build makes no such bundle, so its manifest was edited."""
    gates = output.gates
    at_least = (("cosine", output.cosine, gates.cosine),)
    at_most = (("max_abs", output.max_abs, gates.max_abs), ("max_rel", output.max_rel, gates.max_rel))
    for name, value, gate in at_least:
        if gate is not None and value is not None and not value >= gate:
            yield f"{name} {value:.6g} is below {gate:.6g}"
    for name, value, gate in at_most:
        if gate is not None and value is not None and not value <= gate:
            yield f"{name} {value:.6g} is over {gate:.6g}"
