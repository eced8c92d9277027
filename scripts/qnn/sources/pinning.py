"""Pinning the sources of one model: read them from its model.yaml, fetch each, compare, write.

Reads the file with less demands than a build: pins may be missing or malformed, and the rest of the model may be
unfinished, since a graph's inputs are often written down only after looking at the file that was fetched.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from qnn.errors.base import ForgeError, Place
from qnn.errors.model import InvalidModel, Kind
from qnn.errors.sources import AddressUnusable
from qnn.model.document import Document, Value, read
from qnn.model.load import MODEL_FILE, lint_model
from qnn.model.spec import Source, SourceKind
from qnn.sources.fetch import fetch
from qnn.sources.pins import Pin, with_pins
from qnn.sources.protocol import Policy, Progress


class State(StrEnum):
    """What a pin in model.yaml is, compared with the file at the address."""

    NEW = "new"  # there was none, or only a half
    CHANGED = "changed"
    SAME = "same"


@dataclass(frozen=True)
class Written:
    """A source as model.yaml has it, and where."""

    source: Source
    place: Place


@dataclass(frozen=True)
class Found:
    """A source's pin as it stands in model.yaml (None: missing or unusable) and as it is by the fetched file."""

    name: str
    place: Place
    old_sha256: str | None
    old_size: int | None
    pin: Pin

    @property
    def state(self) -> State:
        """How old and new compare."""
        if self.old_sha256 is None or self.old_size is None:
            return State.NEW
        return State.SAME if Pin(self.old_sha256, self.old_size) == self.pin else State.CHANGED


@dataclass(frozen=True)
class Survey:
    """What came of fetching every source of a model. `failures` have a place."""

    found: tuple[Found, ...]
    failures: tuple[ForgeError, ...]


def written_sources(folder: Path) -> tuple[Written, ...]:
    """The sources in a folder's model.yaml, in its order.

    Raises InvalidModel (QF100) for a missing file and for what is no YAML, AddressUnusable (QF320) for a source that
    names no address.
    """
    model_yaml = folder / MODEL_FILE
    shown = str(model_yaml)
    if not model_yaml.is_file():
        raise InvalidModel(lint_model(folder))  # it says that, and what may be meant
    reading = read(model_yaml.read_bytes(), shown)
    errors = [problem for problem in reading.problems if problem.kind is Kind.ERROR]
    if errors:
        raise InvalidModel(errors)
    document = reading.document
    sources = document.data.get("sources") if document is not None and isinstance(document.data, dict) else None
    if document is None or not isinstance(sources, dict) or not sources:
        raise AddressUnusable(
            "there is nothing to pin: the file has no sources",
            remedy="add a `sources` mapping; docs/sources.md shows one of each kind",
            place=Place(shown, 1, 1) if document is None else document.at_value(("sources",)),
        )
    return tuple(_written(document, name, entry) for name, entry in sources.items())


def survey(
    sources: tuple[Written, ...], model_folder: Path, downloads: Path, *, progress: Progress, policy: Policy
) -> Survey:
    """Fetch every source from its own address, whatever is pinned. One that fails does not keep the others."""
    found: list[Found] = []
    failures: list[ForgeError] = []
    downloads.mkdir(parents=True, exist_ok=True)
    for written in sources:
        source = written.source
        with tempfile.TemporaryDirectory(prefix="pin-", dir=downloads) as folder:
            try:
                fetched = fetch(
                    replace(source, sha256=None, size=None),
                    Path(folder),
                    downloads,
                    model_folder=model_folder,
                    progress=progress,
                    policy=policy,
                )
            except ForgeError as error:
                failures.append(error.at(written.place))
                continue
        pin = Pin(fetched.sha256, fetched.size)
        found.append(Found(source.name, written.place, source.sha256, source.size, pin))
    return Survey(tuple(found), tuple(failures))


def write_pins(folder: Path, pins: Mapping[str, Pin]) -> bool:
    """Put pins into a folder's model.yaml; True if its text changed. The file is replaced whole or not at all.

    Raises PinNotWritten (QF323) with the place, and leaves the file alone.
    """
    model_yaml = folder / MODEL_FILE
    path = model_yaml.resolve()  # a link stays a link
    old = path.read_bytes().decode("utf-8")
    try:
        new = with_pins(old, pins)
    except ForgeError as error:
        raise error.at(Place(str(model_yaml))) from None
    if new == old:
        return False
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, path.stat().st_mode & 0o7777)
            stream.write(new.encode("utf-8"))
            stream.flush()
            os.fsync(descriptor)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    return True


def _written(document: Document, name: str, entry: Value) -> Written:
    path = ("sources", name)
    values = entry if isinstance(entry, dict) else {}
    kinds = [kind for kind in SourceKind if kind.value in values]
    locator = values.get(kinds[0].value) if len(kinds) == 1 else None
    member = values.get("file")
    if not isinstance(locator, str) or not isinstance(member, str | None):
        raise AddressUnusable(
            f'source "{name}" needs exactly one address (and `file`, if given, as text)',
            remedy=f"give it one of: {', '.join(kind.value for kind in SourceKind)}; see docs/sources.md",
            place=document.at_value(path),
        )
    if member is None and kinds[0] in (SourceKind.PYPI, SourceKind.HUGGINGFACE):
        raise AddressUnusable(
            f'source "{name}" does not say which file is wanted',
            remedy="add `file`: its path in the package or repository",
            place=document.at_value(path),
        )
    sha256, size = values.get("sha256"), values.get("size")
    source = Source(
        name=name,
        kind=kinds[0],
        locator=locator,
        member=member,
        sha256=sha256 if isinstance(sha256, str) else None,
        size=size if isinstance(size, int) and not isinstance(size, bool) else None,
    )
    return Written(source, document.at_value((*path, kinds[0].value)))
