"""Rules of sources: what is named exists, what exists is named, and every file is pinned."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qnn.errors.model import Kind, Problem
from qnn.model.document import KeyPath
from qnn.model.nearest import suggest
from qnn.model.rules.base import Rule
from qnn.model.rules.subject import Subject
from qnn.model.text import short


def references(subject: Subject) -> Iterator[tuple[KeyPath, str]]:
    """Every place that names a source, and the name."""
    for graph in subject.keys("graphs"):
        for path in (("graphs", graph, "source"), ("graphs", graph, "reference")):
            if (name := subject.text(*path)) is not None:
                yield path, name
        for precision in subject.keys("graphs", graph, "source"):
            if (name := subject.text("graphs", graph, "source", precision)) is not None:
                yield ("graphs", graph, "source", precision), name
    for source in subject.keys("sources"):
        for index in range(subject.length("sources", source, "beside")):
            if (name := subject.text("sources", source, "beside", index)) is not None:
                yield ("sources", source, "beside", index), name
    if (name := subject.text("licence", "text")) is not None:
        yield ("licence", "text"), name


class KnownSource(Rule):
    """What: A graph, the licence or another source names a source that does not stand under `sources`.

    Why: There is no file to take.

    Mend: Correct the name, or add the source.
    """

    id = "QF104"
    title = "a source that does not exist"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        known = dict.fromkeys(subject.keys("sources"))
        for path, name in references(subject):
            if name not in known:
                remedy = suggest(name, known, "correct the name, or add the source")
                yield cls.problem(subject.at_value(*path), f'there is no source "{short(name)}"', remedy)


class UnusedSource(Rule):
    """What: No graph and no licence names this source, and no Python file beside model.yaml mentions it.

    Why: It would be downloaded for nothing. Often another name was misspelt or a graph forgotten.

    Mend: Delete the source, or use it.
    """

    id = "QF105"
    title = "a source that nothing uses"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        used = {name for _, name in references(subject)}
        mentioned = {text for file in subject.python.values() for text in file.texts}
        used |= mentioned
        for name in subject.keys("sources"):
            if name not in used:
                place = subject.at_key("sources", name)
                yield cls.problem(place, f'nothing uses the source "{short(name)}"', "delete it, or use it")


class Pinned(Rule):
    """What: A source has no `sha256`, no `size`, or neither.

    Why: They are how the toolkit knows that the file it got is the file the author checked, and how it resumes and
    shares downloads.

    Mend: Run `qnn-forge pin` with the model's name. It downloads the sources and fills both in.
    """

    id = "QF106"
    title = "a source that is not pinned"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for name in subject.keys("sources"):
            there = subject.keys("sources", name)
            missing = [key for key in ("sha256", "size") if key not in there]
            if there and missing:
                place = subject.at_key("sources", name)
                message = f'the source "{short(name)}" has no {" and no ".join(missing)}'
                yield cls.problem(place, message, f"run: qnn-forge pin {short(subject.text('name') or '')}".rstrip())


class RequiredOnce(Rule):
    """What: `requires` pins the same package twice. Case, dots, hyphens and underscores make no difference in a
    package's name.

    Why: pip would refuse two versions, and one of two equal lines is a leftover.

    Mend: Delete one of them.
    """

    id = "QF114"
    title = "a package is required twice"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        seen: dict[str, str] = {}
        for path, pin in subject.texts("requires"):
            name = re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower()
            if name in seen and seen[name] != pin:  # equal texts are the schema's to report
                message = f'"{short(pin)}" and "{short(seen[name])}" are the same package'
                yield cls.problem(subject.at_value(*path), message, "delete one of them")
            seen.setdefault(name, pin)


class LocalIsWhole(Rule):
    """What: A local source has a `file`.

    Why: A local source is the file itself. Archives are looked into only when they come from elsewhere.

    Mend: Delete `file`, and let `local` name the file that is wanted.
    """

    id = "QF115"
    title = "a local source with a file inside"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for name in subject.keys("sources"):
            if {"local", "file"} <= set(subject.keys("sources", name)):
                message = f'the source "{short(name)}" is a local file and cannot have a file inside'
                yield cls.problem(subject.at_key("sources", name, "file"), message, "delete it")
