"""Identity of a stage's output: a digest of what it is made from, never of when or where."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool | Sequence[Value] | Mapping[str, Value] | None"

# Raise it when the meaning of a digest changes; every entry made before is then made anew.
_SCHEME = 1


@dataclass(frozen=True)
class StageKey:
    """What a stage's output is made from.

    `code` is the digest of the stage's source (qnn.store.code), `parameters` plain values, `inputs` the digests of
    named inputs: other stages' digests or sha256 of files.
    """

    stage: str
    code: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """64 hex digits."""
        return digest_of([_SCHEME, self.stage, self.code, dict(self.parameters), dict(self.inputs)])


def digest_of(value: Value) -> str:
    """sha256 (hex) of a plain value in canonical JSON; raises ValueError for NaN or infinity."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """sha256 (hex) of a file's bytes, read now."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class KnownDigests:
    """Digests of files this process has read before, by inode: a second name of a file is not read again.

    For files that nobody changes in place. A file that was changed all the same has another size or time of change.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int], str] = {}

    def of(self, path: Path) -> str:
        """sha256 (hex) of a file's bytes, read when they have not been read before."""
        seen = self._identity(path)
        if seen not in self._known:
            self._known[seen] = file_digest(path)
        return self._known[seen]

    def learn(self, path: Path, sha256: str) -> None:
        """Remember a digest that was computed while the file was written."""
        self._known[self._identity(path)] = sha256

    @staticmethod
    def _identity(path: Path) -> tuple[int, int, int, int]:
        stat = path.stat()
        return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
