"""Workflow commands: lines on stdout that the runner turns into annotations. Pure."""

from __future__ import annotations

from typing import Literal

from qnn.report.escape import visible


def command(kind: Literal["error", "warning", "notice"], title: str, message: str) -> str:
    """``::warning title=…::…``; whatever the texts hold, it is one command and one line.

    Escaping as the runner undoes it (actions/toolkit, packages/core/src/command.ts). What does not print is spelled
    out, so there is no line break to escape.
    """
    titled = _escape(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={titled}::{_escape(message)}"


def _escape(words: str) -> str:
    return visible(words).replace("%", "%25")
