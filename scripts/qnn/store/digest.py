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
    """sha256 (hex) of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
