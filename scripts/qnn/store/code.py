"""Digest of a stage's own source code, blind to comments, docstrings and blank lines.

So a change of what a stage does rebuilds what it made, and a change of how it is explained rebuilds nothing.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import tokenize
import uuid
from collections.abc import Iterable
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
    drop = _docstring_lines(ast.parse(source))
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = (line.rstrip() for number, line in enumerate(lines, 1) if number not in drop)
    return "\n".join(line for line in kept if line)


def _docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


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
