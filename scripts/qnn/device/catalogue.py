"""The known errors of QNN on a device: recognised in what qnn-net-run or a log says. errors.yaml is the table."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("errors.yaml")
# "error: 1008", "err 0x138d", "Transport layer setup failed: 14001", "Returned Status = 4000", "with err 1002",
# "Conv2d failed 3110", "platform info: 1008". The number must follow such a word, or any size would be an error.
_NUMBER = re.compile(
    r"(?:\berr(?:or)?(?:[ _]?(?:code|no|num))?|\bfail(?:ed|ure)?|\bstatus|\binfo|\bconfig|\bcode|\breturned)"
    r"\s*(?:is|with|[:=(,])?\s*(?:err(?:or)?(?:[ _]?code)?\s*)?[:=]?\s*(0x[0-9a-f]{3,8}|\d{4,5})(?![0-9a-fx]|\.\d)",
    re.IGNORECASE,
)
# "Failed to create device: 1008": any word may stand before a number that ends a line about a failure.
_LAST_NUMBER = re.compile(r"\b(?:fail|err).*[:=]\s*(0x[0-9a-f]{3,8}|\d{4,5})[\"'.]*\s*$", re.IGNORECASE)
_NAME = re.compile(r"\bQNN_[A-Z0-9_]+\b")


@dataclass(frozen=True)
class KnownError:
    """One row of the table. `code` is QNN's number and `name` its symbol; both None for what is known by its words.

    `id` is the page's name; `says` are patterns of lines; `cause` is a paragraph, `check`, `fix` and `seen` lists.
    """

    id: str
    code: int | None
    name: str | None
    title: str
    says: tuple[re.Pattern[str], ...]
    cause: str
    check: tuple[str, ...]
    fix: tuple[str, ...]
    seen: tuple[str, ...]

    @property
    def page(self) -> str:
        """Where it is described, from the top of the repository."""
        return f"docs/device-errors/{self.id}.md"

    @property
    def label(self) -> str:
        """``1008 QNN_COMMON_ERROR_INCOMPATIBLE_BINARIES: libraries of different QAIRT versions``"""
        number = f"{self.code} {self.name}: " if self.code is not None else ""
        return f"{number}{self.title}"


@functools.cache
def known_errors() -> tuple[KnownError, ...]:
    """All of them, in the table's order."""
    import yaml  # noqa: PLC0415 - only a failed run and the pages need it

    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return tuple(
        KnownError(
            id=row["id"],
            code=row.get("code"),
            name=row.get("name"),
            title=row["title"],
            says=tuple(re.compile(pattern, re.IGNORECASE) for pattern in row.get("says", ())),
            cause=row["cause"],
            check=tuple(row["check"]),
            fix=tuple(row["fix"]),
            seen=tuple(row.get("seen", ())),
        )
        for row in rows
    )


def recognise(text: str) -> tuple[KnownError, ...]:
    """The known errors in a text, each once: those that name a cause first, then numbers, as they come.

    The first number of a run is nearest to the cause: 4000 comes before the 14001 that it leads to.
    """
    lines = text.splitlines()
    by_words = [one for line in lines for one in known_errors() if any(says.search(line) for says in one.says)]
    by_number = [one for line in lines for one in _numbers(line)]
    return tuple(dict.fromkeys([*by_words, *by_number]))


def find(wanted: str) -> KnownError | None:
    """The error of a number (1008, 0x3f0), a symbol or a page's name."""
    key = wanted.strip().casefold()
    number = int(key, 16) if re.fullmatch(r"0x[0-9a-f]{1,8}", key) else None
    return next(
        (
            one
            for one in known_errors()
            if key in (one.id, (one.name or "").casefold()) or (number is not None and one.code == number)
        ),
        None,
    )


def _numbers(line: str) -> Iterator[KnownError]:
    by_code, by_name = _indexes()
    numbers = [*_NUMBER.finditer(line), *_LAST_NUMBER.finditer(line)]
    found = [(match.start(1), by_code.get(int(match[1], 0))) for match in numbers]
    found += [(match.start(), by_name.get(match[0])) for match in _NAME.finditer(line)]
    yield from (one for _, one in sorted(found, key=lambda pair: pair[0]) if one is not None)


@functools.cache
def _indexes() -> tuple[dict[int, KnownError], dict[str, KnownError]]:
    return (
        {one.code: one for one in known_errors() if one.code is not None},
        {one.name: one for one in known_errors() if one.name is not None},
    )
