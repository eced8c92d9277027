"""Makes one stage's output where the store has none, tells the listener, and remembers what failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from qnn.build.events import Listener, Stage
from qnn.child import Limits
from qnn.errors.base import ForgeError
from qnn.plan.targets import Variant
from qnn.store import Entry, StageKey, Store


class Maker:
    """Thread-safe: threads that need the same output meet at the store's lock; one makes it. Logs go to `logs`."""

    def __init__(self, store: Store, listener: Listener, logs: Path) -> None:
        self._store = store
        self._listener = listener
        self._logs = logs
        self._failed: dict[str, ForgeError] = {}
        self._guard = threading.Lock()

    def make(self, key: StageKey, stage: Stage, produce: Callable[[Path], None]) -> Entry:
        """The stage's entry; what failed once in this run fails at once for everything else that needs it."""
        digest = key.digest
        known = self._failed.get(digest)
        if known is not None:
            raise known
        began = time.monotonic()
        announced = False

        def announce_and_produce(folder: Path) -> None:
            nonlocal announced
            announced = True
            if digest in self._failed:  # another thread failed at it while this one waited for the lock
                raise self._failed[digest]
            self._listener.begins(stage)
            produce(folder)

        try:
            made = self._store.make(key, announce_and_produce)
        except ForgeError as error:
            with self._guard:
                self._failed.setdefault(digest, error)
            if announced:
                self._listener.fails(stage)
            raise
        self._listener.ends(stage, time.monotonic() - began, reused=made.reused)
        return made.entry

    def log(self, key: StageKey) -> Path:
        """The stage's log; what an earlier attempt left is removed."""
        log = self._logs / f"{key.stage}-{key.digest[:16]}.log"
        log.unlink(missing_ok=True)
        return log


def limits_of(variant: Variant) -> Limits:
    """What one child may use for this model."""
    own = variant.model.limits
    return Limits(seconds=own.minutes * 60, memory_bytes=int(own.memory_gb * 2**30))


def only_file(entry: Entry) -> Path:
    """The one file of a source entry."""
    (file,) = entry.files
    return entry.folder / file.name


def numbered(entry: Entry) -> tuple[Path, ...]:
    """The entry's .npz files in order."""
    return tuple(entry.folder / file.name for file in entry.files if file.name.endswith(".npz"))
