"""Which entries to remove, oldest use first; and removing them."""

from __future__ import annotations

import shutil

from qnn.store.store import Entry, Store

# What lies beside the stage outputs. All of it is made again when it is needed.
SIDE_FOLDERS = ("downloads", "environments", "logs", "pull")
_SECONDS_A_DAY = 86_400


def prune(store: Store, *, max_bytes: int | None, max_age_days: float | None, now: float) -> tuple[Entry, ...]:
    """Remove entries unused for `max_age_days`, then the least recently used until at most `max_bytes` are left.

    `now` in seconds since the epoch. Returns what was removed; raises StoreInUse (QF903) while a build runs.
    """
    with store.exclusive():
        chosen = doomed(store, max_bytes=max_bytes, max_age_days=max_age_days, now=now)
        for entry in chosen:
            store.remove(entry.digest)
        return chosen


def doomed(store: Store, *, max_bytes: int | None, max_age_days: float | None, now: float) -> tuple[Entry, ...]:
    """What `prune` would remove."""
    aged = sorted(((store.last_used(entry.digest), entry) for entry in store.entries()), key=lambda pair: pair[0])
    return choose(aged, max_bytes=max_bytes, max_age_days=max_age_days, now=now)


def choose(
    aged: list[tuple[float, Entry]], *, max_bytes: int | None, max_age_days: float | None, now: float
) -> tuple[Entry, ...]:
    """The entries to remove of (last use, entry) pairs given oldest first; pure."""
    oldest_kept = -float("inf") if max_age_days is None else now - max_age_days * _SECONDS_A_DAY
    left = sum(entry.size for _, entry in aged)
    chosen = []
    for used, entry in aged:
        too_many = max_bytes is not None and left > max_bytes
        if used < oldest_kept or too_many:
            chosen.append(entry)
            left -= entry.size
    return tuple(chosen)


def prune_side(store: Store) -> None:
    """Remove downloads, environments, logs and what was pulled; raises StoreInUse (QF903) while a build runs."""
    with store.exclusive():
        for name in SIDE_FOLDERS:
            shutil.rmtree(store.root / name, ignore_errors=True)
