"""What a build tells whoever watches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Stage:
    """One stage of work: what it is and for what (a variant's graph, a target)."""

    name: str
    subject: str


class Listener(Protocol):
    """Told of stages from several threads."""

    def begins(self, stage: Stage) -> None:
        """The stage is needed and not in the store."""

    def ends(self, stage: Stage, seconds: float, *, reused: bool) -> None:
        """The stage's output is in the store, made now or found there."""

    def fails(self, stage: Stage) -> None:
        """The stage raised an error."""

    def remarks(self, stage: Stage, lines: Sequence[str]) -> None:
        """What a person should know and what stops nothing. Told once a run, also of a stage the store had."""


class Silence:
    """A listener that says nothing."""

    def begins(self, stage: Stage) -> None:
        """Nothing."""

    def ends(self, stage: Stage, seconds: float, *, reused: bool) -> None:
        """Nothing."""

    def fails(self, stage: Stage) -> None:
        """Nothing."""

    def remarks(self, stage: Stage, lines: Sequence[str]) -> None:
        """Nothing."""
