"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def default_store() -> Path:
    """QNN_FORGE_STORE, else the user's cache folder."""
    named = os.environ.get("QNN_FORGE_STORE")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "qnn-forge"


def store_option(command: _Command) -> _Command:
    """--store FOLDER."""
    return click.option(
        "--store",
        type=click.Path(path_type=Path),
        default=default_store,
        help="Where stage outputs are kept.  [default: $QNN_FORGE_STORE or ~/.cache/qnn-forge]",
    )(command)


def json_option(command: _Command) -> _Command:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout, nothing else.")(command)


def jobs_option(command: _Command) -> _Command:
    """--jobs N."""
    # The emulator uses about two threads itself, so one job for each pair of cores keeps a machine busy.
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=lambda: max(1, (os.cpu_count() or 2) // 2),
        help="Child processes at once.  [default: half the cores]",
    )(command)
