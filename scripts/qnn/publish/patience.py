"""Asking again: growing pauses, or as long as the server says, within bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from qnn.errors.publish import PublishError

_T = TypeVar("_T")


class Again(Exception):
    """This attempt failed with `error`, and another one may succeed; after `wait` seconds if the server named them."""

    def __init__(self, error: PublishError, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


@dataclass(frozen=True)
class Patience:
    """How often a request is made, and the first and the longest pause between two of them (seconds)."""

    attempts: int = 5
    first_pause: float = 1.0
    longest_pause: float = 120.0
    sleep: Callable[[float], None] = time.sleep

    def persevere(self, attempt: Callable[[], _T]) -> _T:
        """What `attempt` returns in the end; its last error when it raises Again too often, or is to wait too long."""
        pause = self.first_pause
        for left in reversed(range(self.attempts)):
            try:
                return attempt()
            except Again as again:
                wait = pause if again.wait is None else again.wait
                if left == 0 or wait > self.longest_pause:
                    raise again.error from None
                self.sleep(wait)
                pause = min(2 * pause, self.longest_pause)
        raise AssertionError("the last attempt returns or raises")
