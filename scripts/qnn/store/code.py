"""Digest of a stage's own source code, blind to comments, docstrings and blank lines.

So a change of what a stage does rebuilds what it made, and a change of how it is explained rebuilds nothing.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path


def code_digest(modules: Iterable[str], memo: Path) -> str:
    """Digest (hex) of the meaning of the named modules' source files; ``package.*`` stands for all of a package.

    `memo` is a folder where the digest of each file is remembered under the sha256 of its bytes: taking comments
    out costs about 10 ms a file, reading what was found last time costs nothing.
    """
    total = hashlib.sha256()
    for name in sorted({module for given in modules for module in _expand(given)}):
        total.update(f"{name}\0{_file_digest(_source_file(name), memo)}\n".encode())
    return total.hexdigest()


def _expand(name: str) -> list[str]:
    """The module itself, or every module of a package and of the packages below it."""
    if not name.endswith(".*"):
        return [name]
    package = name.removesuffix(".*")
    root = _source_file(package).parent
    relative = (path.relative_to(root).with_suffix("").parts for path in root.rglob("*.py"))
    return [".".join((package, *(part for part in parts if part != "__init__"))) for parts in relative]


def meaning(source: str) -> str:
    """The source without comments, docstrings, blank lines and trailing blanks."""
    drop = _docstring_lines(ast.parse(source).body)
    lines = _STRING_OR_COMMENT.sub(lambda found: found[1] or "", source).splitlines()
    kept = (line.rstrip() for number, line in enumerate(lines, 1) if number not in drop)
    return "\n".join(line for line in kept if line)


# A string, which may hold "#", or a comment. Python's own tokenizer says the same (a test compares them on all of this
# package) and takes ten times as long, which every build on a fresh store would pay.
_STRING_OR_COMMENT = re.compile(
    r"""
    ( \"{3} (?:[^\\]|\\.)*? \"{3}
    | \'{3} (?:[^\\]|\\.)*? \'{3}
    | " (?:[^"\\\n]|\\.)* "
    | ' (?:[^'\\\n]|\\.)* '
    )
    | \# [^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)


def _docstring_lines(statements: Iterable[ast.stmt]) -> set[int]:
    """Lines of all docstrings in these statements, the first of which may be one itself."""
    found: set[int] = set()
    first = next(iter(statements), None)
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    for scope in _scopes(statements):
        found |= _docstring_lines(scope.body)
    return found


def _scopes(statements: Iterable[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Classes and functions directly among the statements, and in the branches of ifs, loops, withs and tries."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
            continue
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            for inner in getattr(statement, name, ()):
                yield from _scopes([inner] if isinstance(inner, ast.stmt) else inner.body)


def _source_file(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module)
    return Path(spec.origin)


def _file_digest(path: Path, memo: Path) -> str:
    data = path.read_bytes()
    remembered = memo / hashlib.sha256(data).hexdigest()
    try:
        known = remembered.read_text()
    except FileNotFoundError:
        known = ""
    if len(known) == 64:
        return known
    digest = hashlib.sha256(meaning(data.decode()).encode()).hexdigest()
    memo.mkdir(parents=True, exist_ok=True)
    partial = remembered.with_name(f"{remembered.name}.{uuid.uuid4().hex}.part")
    partial.write_text(digest)
    partial.replace(remembered)
    return digest
