"""Faults of a model.yaml and of the files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from qnn.errors.base import ExitCode, ForgeError, Place


class Kind(StrEnum):
    """How much a problem weighs: an error stops a build, a hint is advice."""

    ERROR = "error"
    HINT = "hint"


@dataclass(frozen=True)
class Problem:
    """One thing a lint rule found. `id` is the rule's, `place` has a line and a column (1-based, in characters)."""

    id: str
    kind: Kind
    place: Place
    message: str
    remedy: str

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """Sorts problems as a reader meets them in the file."""
        return (self.place.path, self.place.line or 0, self.place.column or 0, self.id, self.message)

    def line(self) -> str:
        """``path:line:column QFnnn message; remedy``, on one line."""
        weight = "hint: " if self.kind is Kind.HINT else ""
        return f"{self.place} {self.id} {weight}{self.message}; {self.remedy}"


class InvalidModel(ForgeError):
    """What: A model.yaml, or a file beside it, has one or more problems that stop a build.

    Why: Every problem is found before anything is downloaded or compiled, so that a wrong letter costs a second and
    not twenty minutes. All problems are reported at once; each has its own id, line and column.

    Mend: Go through the lines of the message from the top: each says what is wrong and what to do, and
    `qnn-forge explain` with its id says more. `qnn-forge lint` repeats the check without building.
    """

    id = "QF100"
    title = "the model has problems"
    exit_code = ExitCode.MODEL

    def __init__(self, problems: Sequence[Problem]) -> None:
        """`problems` are errors, not hints, and at least one."""
        self.problems = tuple(sorted(problems, key=lambda problem: problem.order))
        first = self.problems[0]
        super().__init__(
            "\n".join(problem.line() for problem in self.problems),
            remedy="mend these lines, then run `qnn-forge lint` to check",
            place=first.place,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (InvalidModel, (self.problems,))

    def lines(self) -> list[str]:
        """Every problem on its own line first; the ids to look up last."""
        ids = sorted({problem.id for problem in self.problems})
        return [
            *(problem.line() for problem in self.problems),
            f"  remedy: {self.remedy}",
            f"  more: qnn-forge explain {' | '.join(ids)}",
        ]


class UnknownModel(ForgeError):
    """What: No model has the name or path that was given.

    Why: A model is named by its folder under `models/`, by the path of that folder, or by the path of its
    `model.yaml`. Relative paths and `models/` are looked for in the current folder.

    Mend: Use one of the names in the message, or change to the root of the repository first.
    """

    id = "QF101"
    title = "there is no such model"
    exit_code = ExitCode.MODEL
