"""What every error a user can meet has in common: a stable id, an exit code by kind, a place, a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import ClassVar


class ExitCode(IntEnum):
    """Exit codes of the command line, one per kind of fault. They are API: never renumber."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    MODEL = 3
    CHIP = 4
    SOURCE = 5
    GRAPH = 6
    TOOLCHAIN = 7
    GATE = 8
    BUNDLE = 9
    MODEL_CODE = 10
    SYSTEM = 11
    PUBLISH = 12
    DEVICE = 13
    # What `pull` decided, when it is not simply the file asked for: taken with a warning, not built yet, never.
    PULL_WARNING = 20
    PULL_BUILD = 21
    PULL_NO = 22
    INTERRUPTED = 130


@dataclass(frozen=True)
class Place:
    """Where a fault is: a file, and inside it a 1-based line and column when they are known."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)


class ForgeError(Exception):
    """Base of every error shown to a user.

    A subclass sets `id` (QFnnn, never reused), `title` and `exit_code`; its docstring is the page that
    `qnn-forge explain` prints and docs/lint/ holds, in three parts headed ``What:``, ``Why:`` and ``Mend:``.
    """

    id: ClassVar[str] = ""
    title: ClassVar[str] = ""
    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        place: Place | None = None,
        details: Sequence[str] = (),
        log: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.place = place
        self.details = tuple(details)
        self.log = log

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross from child processes to the parent by pickle; keyword-only arguments need help there.
        return (_rebuild, (type(self), self.message, self.remedy, self.place, self.details, self.log))

    def at(self, place: Place) -> ForgeError:
        """The same error with a place, unless it already has one."""
        if self.place is None:
            self.place = place
        return self

    def lines(self) -> list[str]:
        """The error as a person reads it: one headline, then details, log, remedy and where to read more."""
        head = f"{self.place} {self.id} {self.message}" if self.place else f"{self.id} {self.message}"
        out = [head, *(f"  {line}" for line in self.details)]
        if self.log is not None:
            out.append(f"  log: {self.log}")
        out.append(f"  remedy: {self.remedy}")
        out.append(f"  more: qnn-forge explain {self.id}")
        return out


def _rebuild(
    kind: type[ForgeError],
    message: str,
    remedy: str,
    place: Place | None,
    details: tuple[str, ...],
    log: Path | None,
) -> ForgeError:
    return kind(message, remedy=remedy, place=place, details=details, log=log)
