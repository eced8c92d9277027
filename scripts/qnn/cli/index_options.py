"""Options of the commands that read an index, and how they reach it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qnn.cli.downloads import download_bars
from qnn.cli.options import default_store

if TYPE_CHECKING:
    from qnn.pull.bases import Desk

_Command = TypeVar("_Command", bound=Callable[..., Any])


def from_option(command: _Command) -> _Command:
    """--from URL|DIR."""
    return click.option(
        "--from",
        "index",
        metavar="URL|DIR",
        help="The index: an https address or a folder.  [default: $QNN_FORGE_INDEX or the public index]",
    )(command)


def cache_folder() -> Path:
    """Where pulled archives and index documents are kept: QNN_FORGE_CACHE, else in the store's folder, where
    `qnn-forge store prune --side` finds them.
    """
    named = os.environ.get("QNN_FORGE_CACHE")
    return Path(named) if named else default_store() / "pull"


@contextmanager
def open_desk() -> Iterator[Desk]:
    """What downloading needs, with progress on a terminal for as long as it is open."""
    from qnn.pull.bases import Desk  # noqa: PLC0415 - not needed for --help
    from qnn.sources.protocol import Policy  # noqa: PLC0415
    from qnn.sources.shelf import Shelf  # noqa: PLC0415

    with download_bars("pull") as progress:
        yield Desk(Shelf(cache_folder()), Policy(), progress)
