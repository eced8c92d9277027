"""Rules of paths: they stay inside the model's folder and lead to something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qnn.errors.model import Problem
from qnn.model.beside import is_file, is_folder, leaves, why_not_relative
from qnn.model.document import KeyPath
from qnn.model.rules.base import Rule
from qnn.model.rules.subject import Subject
from qnn.model.text import short


@dataclass(frozen=True)
class _Named:
    """A path of something beside model.yaml, and where it is named."""

    at: KeyPath
    path: str
    folder: bool


def _beside(subject: Subject) -> Iterator[_Named]:
    for name in subject.keys("sources"):
        if (path := subject.text("sources", name, "local")) is not None:
            yield _Named(("sources", name, "local"), path, folder=False)
    if (path := subject.text("checks", "samples")) is not None:
        yield _Named(("checks", "samples"), path, folder=True)
    for at in subject.functions:
        if (path := subject.text(*at)) is not None:
            yield _Named(at, path.rpartition(":")[0] or path, folder=False)


class StaysInside(Rule):
    """What: A path is absolute, leads out of its folder by `..` or a symbolic link, has a backslash, or has an empty
    step.

    Why: A model is its folder and nothing else: it must build the same on any machine, and a pull request must not
    read files of the machine that builds it. The same holds for the path of a file in an archive.

    Mend: Put the file into the model's folder and name it relative to that, with `/` between folders.
    """

    id = "QF107"
    title = "a path that leads out of the folder"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        remedy = "name a file inside, with / between folders"
        for name in subject.keys("sources"):
            member = subject.text("sources", name, "file")
            if member is not None and (why := why_not_relative(member)):
                place = subject.at_value("sources", name, "file")
                yield cls.problem(place, f'the path "{short(member)}" cannot be used: {why}', remedy)
        for named in _beside(subject):
            why = why_not_relative(named.path)
            if why is None and leaves(subject.folder, named.path):
                why = "it leads out of its folder by a symbolic link"
            if why:
                message = f'the path "{short(named.path)}" cannot be used: {why}'
                yield cls.problem(subject.at_value(*named.at), message, remedy)


class Exists(Rule):
    """What: A file or folder that model.yaml names is not there, or it is a folder where a file belongs, or the other
    way round.

    Why: The build would stop there, perhaps after half its work.

    Mend: Correct the path, or add the file; `git status` shows whether it was forgotten.
    """

    id = "QF108"
    title = "a file that does not exist"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for named in _beside(subject):
            if why_not_relative(named.path) or leaves(subject.folder, named.path):
                continue  # StaysInside says so
            what, exists = ("folder", is_folder) if named.folder else ("file", is_file)
            if not exists(subject.folder, named.path):
                message = f'there is no {what} "{short(named.path)}" beside model.yaml'
                yield cls.problem(subject.at_value(*named.at), message, "correct the path, or add it")


class EnoughSamples(Rule):
    """What: The folder of `checks.samples` has fewer `.npz` files than `checks.count` asks for.

    Why: The check would compare less than the file promises.

    Mend: Add samples, or lower `count`.
    """

    id = "QF154"
    title = "too few samples"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        path = subject.text("checks", "samples")
        if path is None or not is_folder(subject.folder, path):
            return
        wanted = int(subject.number("checks", "count") or 1)
        found = sum(1 for sample in (subject.folder / path).glob("*.npz") if sample.is_file())
        if found < wanted:
            place = subject.at_value("checks", "count" if subject.has("checks", "count") else "samples")
            message = f'"{short(path)}" has {found} .npz files, and {wanted} are to be compared'
            yield cls.problem(place, message, "add samples, or lower count")
