"""What lint reads out of data.py and metric.py without running them: their functions, parameters and texts."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Function:
    """A function at the top of a module. `accepts` are names it can be given by keyword, `needs` those it must be.

    `open` says that it takes any keyword.
    """

    line: int
    column: int
    accepts: frozenset[str]
    needs: frozenset[str]
    open: bool


@dataclass(frozen=True)
class SyntaxFault:
    """Why a file is not Python; line and column are 1-based."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class PythonFile:
    """What stands in a Python file. `functions` has None for a name that is bound but not by a `def`."""

    functions: dict[str, Function | None]
    texts: frozenset[str]
    fault: SyntaxFault | None = None


def parse(path: Path) -> PythonFile:
    """Parse a file; it is never imported. What is no Python, or cannot be read, comes back with `fault`."""
    try:
        with path.open("rb") as file:
            source = file.read(MAX_BYTES + 1)
    except OSError as error:
        return _faulty(1, 1, f"the file cannot be read: {error.strerror}")
    if len(source) > MAX_BYTES:
        return _faulty(1, 1, f"the file is larger than {MAX_BYTES // 1024} KiB")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in strings, which are not lint's business
            module = ast.parse(source)
    except SyntaxError as error:
        return _faulty(max(error.lineno or 1, 1), max(error.offset or 1, 1), error.msg)
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes; nesting beyond what Python's parser takes
        return _faulty(1, 1, str(error) or "it is nested too deeply")
    bound = dict(_bound(module.body))
    texts = (node.value for node in ast.walk(module) if isinstance(node, ast.Constant))
    return PythonFile(bound, frozenset(text for text in texts if isinstance(text, str)))


def _faulty(line: int, column: int, message: str) -> PythonFile:
    return PythonFile({}, frozenset(), SyntaxFault(line, column, message))


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, Function | None]]:
    """Names that the top level of a module binds, also inside its `if`, `try` and `with`."""
    for statement in body:
        match statement:
            case ast.FunctionDef():
                yield statement.name, _function(statement)
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    yield (alias.asname or alias.name.partition(".")[0]), None
            case ast.Assign():
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        yield target.id, None
            case ast.If() | ast.With() | ast.Try():
                for block in ("body", "orelse", "finalbody"):
                    yield from _bound(getattr(statement, block, []))


def _function(node: ast.FunctionDef) -> Function:
    arguments = node.args
    by_position = [*arguments.posonlyargs, *arguments.args]
    without_default = by_position[: len(by_position) - len(arguments.defaults)]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    needs = {argument.arg for argument in without_default}
    needs |= {argument.arg for argument, default in keywords if default is None}
    return Function(
        line=node.lineno,
        column=node.col_offset + 1,
        accepts=frozenset(argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)),
        needs=frozenset(needs),
        open=arguments.kwarg is not None,
    )
