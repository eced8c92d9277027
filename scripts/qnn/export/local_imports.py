"""Which Python files of a model's folder a file of it imports. They are read and never run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def local_imports(folder: Path, file: str) -> tuple[str, ...]:
    """`file` and what it imports of the folder, directly or through others, sorted; relative paths.

    Imports inside functions count; those by computed names are not seen. A file that is no Python stands for itself.
    """
    found: set[str] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in found and (folder / path).is_file():
            found.add(path)
            waiting += _imported(folder, path)
    return tuple(sorted(found))


def _imported(folder: Path, path: str) -> Iterator[str]:
    import ast  # noqa: PLC0415 - only models with an export need it

    try:
        module = ast.parse((folder / path).read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # lint says so, and so does the run
    package = os.path.dirname(path)
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(folder, "", alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package
            for _ in range(node.level - 1):
                base = os.path.dirname(base)
            for alias in node.names:
                dotted = f"{node.module}.{alias.name}" if node.module else alias.name
                yield from _files(folder, base if node.level else "", dotted)


def _files(folder: Path, base: str, dotted: str) -> Iterator[str]:
    """The files that importing ``a.b.c`` runs, as far as they are in the folder."""
    path = base
    for name in dotted.split("."):
        path = os.path.join(path, name)
        for file in (f"{path}.py", os.path.join(path, "__init__.py")):
            if (folder / file).is_file():
                yield file
