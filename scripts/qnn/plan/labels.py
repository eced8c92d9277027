"""What the labels of a pull request ask of a plan. Pure; labels are written by strangers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# GitHub's own limit is 50 characters.
_LONGEST = 100


@dataclass(frozen=True)
class Labels:
    """`models` and `socs` are globs; empty means: no such label."""

    skip: bool = False
    dry_run: bool = False
    all_socs: bool = False
    models: tuple[str, ...] = ()
    socs: tuple[str, ...] = ()


def read_labels(names: Iterable[str]) -> Labels:
    """What the labels mean together; those that mean nothing here are ignored, in whatever order they come."""
    known = sorted({name.strip() for name in names if len(name) <= _LONGEST})
    return Labels(
        skip="ci:skip" in known,
        dry_run="ci:dry-run" in known,
        all_socs="socs:all" in known,
        models=_after("model:", known),
        socs=_after("soc:", known),
    )


def _after(prefix: str, names: Iterable[str]) -> tuple[str, ...]:
    globs = (name.removeprefix(prefix).strip() for name in names if name.startswith(prefix))
    return tuple(glob for glob in globs if glob)
