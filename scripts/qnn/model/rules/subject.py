"""What a rule looks at. Every look is safe: where the file is not as it should be, there is simply nothing to see.

So all rules run on a file with structural faults too, and none repeats what the schema has said already.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from qnn.errors.base import Place
from qnn.model.beside import is_file
from qnn.model.document import Document, KeyPath, Value
from qnn.model.python_files import PythonFile, parse


@dataclass(frozen=True)
class Subject:
    """One model.yaml and its folder."""

    document: Document
    folder: Path

    def value(self, *path: str | int) -> Value:
        """The value at a path, or None."""
        found = self.document.data
        for step in path:
            found = _step(found, step)
        return found

    def text(self, *path: str | int) -> str | None:
        """The text at a path, or None when there is none."""
        value = self.value(*path)
        return value if isinstance(value, str) else None

    def number(self, *path: str | int) -> float | None:
        """The number at a path, or None when there is none."""
        value = self.value(*path)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def keys(self, *path: str | int) -> list[str]:
        """The keys of the mapping at a path; none when there is no mapping."""
        value = self.value(*path)
        return list(value) if isinstance(value, dict) else []

    def texts(self, *path: str | int) -> Iterator[tuple[KeyPath, str]]:
        """The texts in the list at a path, each with its own path."""
        value = self.value(*path)
        for index, item in enumerate(value if isinstance(value, list) else ()):
            if isinstance(item, str):
                yield (*path, index), item

    def length(self, *path: str | int) -> int:
        """How many items the list at a path has; 0 when there is no list."""
        value = self.value(*path)
        return len(value) if isinstance(value, list) else 0

    def has(self, *path: str | int) -> bool:
        """Whether there is a key, whatever its value."""
        return path in self.document.keys

    def at_value(self, *path: str | int) -> Place:
        """Where a value stands."""
        return self.document.at_value(path)

    def at_key(self, *path: str | int) -> Place:
        """Where a key stands."""
        return self.document.at_key(path)

    def beside(self, name: str, line: int | None = None, column: int | None = None) -> Place:
        """A place in a file beside model.yaml, shown as model.yaml itself is."""
        return Place(str(Path(self.document.shown).with_name(name)), line, column)

    @property
    def functions(self) -> list[KeyPath]:
        """The keys that name a function as FILE.py:FUNCTION; each may be absent."""
        return [
            ("checks", "data"),
            ("checks", "metric"),
            ("checks", "chain", "feed"),
            ("checks", "chain", "metric"),
            *(("graphs", graph, "export") for graph in self.keys("graphs")),
        ]

    @functools.cached_property
    def python(self) -> Mapping[str, PythonFile]:
        """The Python files at the top of the folder and those named as FILE.py:FUNCTION, by relative path."""
        named = ((self.text(*path) or "").rpartition(":")[0] for path in self.functions)
        paths = {path.name for path in self.folder.glob("*.py")} | {path for path in named if path}
        return {path: parse(self.folder / path) for path in sorted(paths) if is_file(self.folder, path)}


def _step(value: Value, step: str | int) -> Value:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None
