"""What `qnn-forge lint` found, for people, for GitHub and for programs. Pure: problems in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from qnn.errors.model import Kind, Problem


def summary(problems: Sequence[Problem], models: int) -> str:
    """One line: how many errors and hints in how many models."""
    errors = sum(problem.kind is Kind.ERROR for problem in problems)
    hints = len(problems) - errors
    found = ", ".join(_count(number, noun) for number, noun in ((errors, "error"), (hints, "hint")) if number)
    return f"{_count(models, 'model')} checked: {found or 'no problems'}"


def text(problems: Iterable[Problem]) -> str:
    """``path:line:column QFnnn message; remedy``, one line for each problem."""
    return "".join(f"{problem.line()}\n" for problem in problems)


def github(problems: Iterable[Problem]) -> str:
    """Workflow commands, which GitHub shows as annotations in the pull request: errors, and notices for hints.

    Escaping as the runner undoes it (actions/toolkit, packages/core/src/command.ts): %, CR and LF everywhere, in
    properties ``:`` and ``,`` too.
    """
    return "".join(_command(problem) for problem in problems)


def as_json(problems: Sequence[Problem], models: int) -> dict[str, object]:
    """The document of ``--format json``: counts, and every problem with its place."""
    return {
        "errors": sum(problem.kind is Kind.ERROR for problem in problems),
        "hints": sum(problem.kind is Kind.HINT for problem in problems),
        "models": models,
        "problems": [
            {
                "id": problem.id,
                "kind": problem.kind.value,
                "path": problem.place.path,
                "line": problem.place.line,
                "column": problem.place.column,
                "message": problem.message,
                "remedy": problem.remedy,
            }
            for problem in problems
        ],
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _command(problem: Problem) -> str:
    name = "error" if problem.kind is Kind.ERROR else "notice"
    place = problem.place
    properties: Mapping[str, object] = {
        "file": place.path,
        "line": place.line,
        "col": place.column,
        "title": problem.id,
    }
    written = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{name} {written}::{_escape(f'{problem.message}; {problem.remedy}')}\n"


def _escape(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    return _escape(words).replace(":", "%3A").replace(",", "%2C")
