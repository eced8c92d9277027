"""SHA256SUMS: the lines `sha256sum` writes and `sha256sum --check` reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from qnn.errors.base import Place
from qnn.errors.provenance import ChecksumDiffers, UnreadableChecksums
from qnn.provenance.subject import Subject
from qnn.store.digest import file_digest

FILE_NAME = "SHA256SUMS"

# A plain name: what `sha256sum` writes with a backslash in front (line breaks, backslashes) is no name of ours.
_NAME = re.compile(r"(?!\.\.?$)[^/\\\0\r\n]+")
_LINE = re.compile(rf"(?P<sha256>[0-9a-f]{{64}})[ ][ *](?P<name>{_NAME.pattern})")
_AGAIN = "download SHA256SUMS again from the release that the files came from"


def checksums(subjects: Iterable[Subject]) -> str:
    """The text of SHA256SUMS: one line a file in name order, so that the same files give the same bytes.

    Raises ValueError for a name that is not plain, or the same name twice.
    """
    ordered = sorted(subjects)
    names = [subject.name for subject in ordered]
    if len(set(names)) != len(names):
        raise ValueError(f"a name twice: {sorted(name for name in set(names) if names.count(name) > 1)}")
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"not a plain file name: {name!r}")
    return "".join(f"{subject.sha256}  {subject.name}\n" for subject in ordered)


def parse(text: str, where: Path) -> tuple[Subject, ...]:
    """The subjects of a SHA256SUMS text, in its order; `where` is for messages.

    Raises UnreadableChecksums (QF748) for an empty text, a line that is no checksum, a name that is not plain, and the
    same name twice.
    """
    found: dict[str, Subject] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise UnreadableChecksums(
                f"not a sha256 and a plain file name: {line[:120]!r}", place=Place(str(where), number), remedy=_AGAIN
            )
        if match["name"] in found:
            raise UnreadableChecksums(
                f"{match['name']} is listed twice", place=Place(str(where), number), remedy=_AGAIN
            )
        found[match["name"]] = Subject(match["name"], match["sha256"])
    return tuple(found.values())


def read(path: Path) -> tuple[Subject, ...]:
    """The subjects of a SHA256SUMS file. Raises UnreadableChecksums (QF748)."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise UnreadableChecksums(f"{path} is missing", remedy=_AGAIN) from None
    except UnicodeDecodeError:
        raise UnreadableChecksums(f"{path} is not text", remedy=_AGAIN) from None
    return parse(text, path)


def check_file(path: Path, subjects: Sequence[Subject]) -> None:
    """Raises ChecksumDiffers (QF749) unless `path` is listed, is there and has the sha256 that is listed."""
    listed = next((subject for subject in subjects if subject.name == path.name), None)
    if listed is None:
        raise ChecksumDiffers(
            f"{path.name} is not listed in {FILE_NAME}", remedy="take both from the same release, with the same name"
        )
    try:
        actual = file_digest(path)
    except FileNotFoundError:
        raise ChecksumDiffers(f"{path.name} is listed in {FILE_NAME} and missing", remedy="download it too") from None
    if actual != listed.sha256:
        raise ChecksumDiffers(
            f"{path.name} is not the file that {FILE_NAME} lists",
            details=(f"listed sha256 {listed.sha256}", f"actual sha256 {actual}"),
            remedy="download it again; if it still differs, do not use it and report it to whoever published it",
        )


def check_folder(folder: Path) -> tuple[Subject, ...]:
    """Check every file that the SHA256SUMS of `folder` lists; returns them.

    Files that it does not list are none of its business, as with `sha256sum --check`. Raises UnreadableChecksums
    (QF748) and ChecksumDiffers (QF749).
    """
    subjects = read(folder / FILE_NAME)
    for subject in subjects:
        check_file(folder / subject.name, subjects)
    return subjects
