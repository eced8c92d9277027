"""Getting an official package: wheels through pip, AARs over https from a Maven repository; both kept on the shelf.

The shelf is that of the models' sources, so a package is downloaded once a machine, resumed, and locked while in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import file_digest
from pathlib import Path

from qnn.errors.libs import NoSuchLibraries, NotTheOfficialPackage
from qnn.errors.sources import SourceNotFound
from qnn.libs.packages import Origin, Package
from qnn.model.spec import Source, SourceKind
from qnn.sources.protocol import Fetcher, Order, Policy, Silent
from qnn.sources.shelf import Shelf, Shelved, Slot

MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
# Wheels hold no Python-independent tag: each Python has its own, with the same libraries. The pins are those of cp311.
_PYTHON = ("--python-version", "3.11", "--implementation", "cp", "--abi", "cp311")
_CHECKSUMS = (("sha256", 64), ("sha1", 40))
_VERSION = re.compile(r"<version>([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})</version>")
_MOST_TEXT = 1 << 20


class Assurance(StrEnum):
    """What a package was held against."""

    PINNED = "sha256 known beforehand"
    REPOSITORY_SHA256 = "sha256 published beside it"
    REPOSITORY_SHA1 = "sha1 published beside it"


@dataclass(frozen=True)
class Obtained:
    """A package on this machine. `size` in bytes."""

    path: Path
    sha256: str
    size: int
    assurance: Assurance


@dataclass(frozen=True)
class Depot:
    """Where packages come from and are kept: the downloads folder, the Maven repository, how the network is used."""

    downloads: Path
    maven: str = MAVEN_CENTRAL
    policy: Policy = field(default_factory=Policy)

    @contextmanager
    def package(self, package: Package) -> Iterator[Obtained]:
        """The package, locked while in use; from the network only where it is not on the shelf yet.

        Raises NoSuchLibraries (QF770), NotTheOfficialPackage (QF773), another SourceError (QF3xx), OSError.
        """
        shelf = Shelf(self.downloads)
        slot = shelf.slot(self.address(package))
        with shelf.locked(slot):
            yield self._obtain(package, shelf, slot)

    def holds(self, package: Package) -> bool:
        """Whether a download of it is on the shelf."""
        return Shelf(self.downloads).slot(self.address(package)).find() is not None

    def address(self, package: Package) -> str:
        """What a package is kept under: wheels by platform too, unlike a model's."""
        if package.origin is Origin.PYPI:
            return f"pypi:{package.name}=={package.version}:{package.tag}"
        return f"url:{self.url(package)}"

    def url(self, package: Package) -> str:
        """Where an AAR is."""
        name = package.name.rpartition(":")[2]
        return f"{self._folder(package)}/{package.version}/{name}-{package.version}.aar"

    def _folder(self, package: Package) -> str:
        return f"{self.maven.rstrip('/')}/{package.name.replace('.', '/').replace(':', '/')}"

    def _obtain(self, package: Package, shelf: Shelf, slot: Slot) -> Obtained:
        kept = slot.find()
        if kept is not None and not _usable(kept, package):
            slot.drop()
            kept = None
        if kept is None or package.sha256 is None:
            kept = self._download(package, slot)
        if package.sha256 is not None:
            if kept.sha256 != package.sha256:
                slot.drop()
                raise _not_official(package, "sha256", package.sha256, kept.sha256)
            return Obtained(kept.path, kept.sha256, kept.size, Assurance.PINNED)
        return Obtained(kept.path, kept.sha256, kept.size, self._vouched(package, shelf, slot, kept))

    def _download(self, package: Package, slot: Slot) -> Shelved:
        if package.origin is Origin.PYPI:
            from qnn.sources.pypi import PypiFetcher  # noqa: PLC0415 - needed only for a download

            fetcher: Fetcher = PypiFetcher(("--platform", str(package.tag), *_PYTHON))
            source = _source(f"libraries for {package.tag}", SourceKind.PYPI, f"{package.name}=={package.version}")
        else:
            from qnn.sources.https import HttpsFetcher  # noqa: PLC0415 - imports httpx

            fetcher = HttpsFetcher()
            source = _source("libraries for Android", SourceKind.URL, self.url(package))
        try:
            fetcher.address(source)  # refuses an unusable --maven
            return fetcher.obtain(Order(source, slot, self.policy, Silent()))
        except SourceNotFound as error:
            raise NoSuchLibraries(
                f"{package} is not to be had",
                remedy="ask for another version with --toolchain; if a mirror lacks it, have it added there",
                details=(error.message, *error.details, *self._published(package)),
            ) from None

    def _vouched(self, package: Package, shelf: Shelf, slot: Slot, kept: Shelved) -> Assurance:
        """Hold a package against the repository's own checksum, the best one it has."""
        for name, digits in _CHECKSUMS:
            text = self._text(shelf, f"{self.url(package)}.{name}")
            words = (text or "").lower().split()
            if not words or not re.fullmatch(rf"[0-9a-f]{{{digits}}}", words[0]):
                continue
            with kept.path.open("rb") as stream:
                actual = file_digest(stream, name).hexdigest()
            if actual != words[0]:
                slot.drop()
                raise _not_official(package, name, words[0], actual)
            return Assurance.REPOSITORY_SHA256 if name == "sha256" else Assurance.REPOSITORY_SHA1
        raise NotTheOfficialPackage(
            f"nothing vouches for {package}: no digest of it is known, and the repository publishes none",
            remedy=f"find out its digest and give it: --sha256 {kept.sha256} if that is the one",
        )

    def _published(self, package: Package) -> tuple[str, ...]:
        """What versions a Maven repository says it has, as one line; nothing where it does not say."""
        if package.origin is not Origin.MAVEN:
            return ()
        text = self._text(Shelf(self.downloads), f"{self._folder(package)}/maven-metadata.xml") or ""
        versions = sorted(set(_VERSION.findall(text)), key=lambda version: [int(part) for part in version.split(".")])
        return (f"it has {', '.join(versions[-12:])}",) if versions else ()

    def _text(self, shelf: Shelf, url: str) -> str | None:
        """A small text from the repository; None if there is none."""
        from qnn.sources.https import HttpsFetcher  # noqa: PLC0415 - imports httpx

        fetcher, source = HttpsFetcher(), _source("what the Maven repository says", SourceKind.URL, url)
        policy = replace(self.policy, unpinned_limit=_MOST_TEXT)
        slot = shelf.slot(fetcher.address(source))
        with shelf.locked(slot):
            try:
                kept = fetcher.obtain(Order(source, slot, policy, Silent()))
            except SourceNotFound:
                return None
            return kept.path.read_bytes().decode("ascii", "replace")


def _source(name: str, kind: SourceKind, locator: str) -> Source:
    # Not pinned here: errors about pins of sources speak of model.yaml, which has no part in this.
    return Source(name, kind, locator, None, None, None)


def _usable(kept: Shelved, package: Package) -> bool:
    return kept.intact() and package.sha256 in (None, kept.sha256)


def _not_official(package: Package, kind: str, expected: str, actual: str) -> NotTheOfficialPackage:
    return NotTheOfficialPackage(
        f"what came as {package} is not that package",
        remedy="find out where it came from; if it was published anew and you trust it, give its digest with --sha256",
        details=(f"expected {kind} {expected}", f"actual   {kind} {actual}"),
    )
