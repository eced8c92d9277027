"""Just enough of the Dockerfile language to hold the file to its rules."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

DOCKER = Path(__file__).parents[2] / "docker"
DOCKERFILE = DOCKER / "Dockerfile"


@dataclass(frozen=True)
class Instruction:
    """One instruction: the stage it belongs to ("" before the first FROM), its keyword, the rest of its lines."""

    stage: str
    keyword: str
    rest: str


def instructions(text: str) -> tuple[Instruction, ...]:
    """All instructions in order; comments are dropped and continued lines joined by a space."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    found: list[Instruction] = []
    stage = ""
    for line in filter(str.strip, joined.splitlines()):
        keyword, _, rest = line.strip().partition(" ")
        if keyword == "FROM":
            stage = rest.rpartition(" AS ")[2]
        found.append(Instruction(stage, keyword, rest.strip()))
    return tuple(found)


def ignored(path: str, patterns: Sequence[str]) -> bool:
    """Whether a .dockerignore leaves a path out: the last pattern that matches it, or a folder above it, decides."""
    parts = PurePosixPath(path)
    candidates = [str(parts), *(str(parent) for parent in parts.parents if str(parent) != ".")]
    out = False
    for pattern in patterns:
        if any(_matches(candidate, pattern.removeprefix("!")) for candidate in candidates):
            out = not pattern.startswith("!")
    return out


def _matches(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return any(fnmatch.fnmatchcase(part, pattern[3:]) for part in path.split("/"))
    names, globs = path.split("/"), pattern.split("/")
    return len(names) == len(globs) and all(map(fnmatch.fnmatchcase, names, globs))


def ignore_patterns(text: str) -> tuple[str, ...]:
    """The patterns of a .dockerignore."""
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
