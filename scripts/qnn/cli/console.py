"""Where and how output goes: tables and progress to people, one JSON document to machines, errors to stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from qnn.errors.base import ForgeError

if TYPE_CHECKING:
    from rich.console import Console


def out() -> Console:
    """The console for results. Colours only on a terminal and without NO_COLOR; wide tables stay whole in a pipe."""
    return _console(stderr=False)


def err() -> Console:
    """The console for progress and messages."""
    return _console(stderr=True)


def print_json(document: object) -> None:
    """One JSON document on stdout, keys sorted."""
    sys.stdout.write(json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def print_error(error: ForgeError) -> None:
    """An error as a person reads it, on stderr."""
    head, *rest = error.lines()
    click.secho(f"error: {head}", fg="red", bold=True, err=True)
    for line in rest:
        click.echo(line, err=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console  # noqa: PLC0415 - 40 ms that a quiet command need not pay

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 160
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=not stream.isatty())
