"""What a command line did with an input, and whether that is as it must be."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

from qnn.catalogue import pages
from qnn.cli import run
from qnn.errors.base import ExitCode

_ID = re.compile(r"\bQF\d{3}\b")
_CODE = re.compile(r"exit code (\d+)")
# The log of a child process is kept for whoever reports the error, which then names it.
# As an error says it to people, and in a JSON document.
_NAMES_A_LOG = re.compile(r'\n  log: |"log": "')


class BadOutcome(AssertionError):
    """A command did what no command may do."""


@dataclass(frozen=True)
class Outcome:
    """One finished command line, and the files that it left in the temporary folder."""

    command: tuple[str, ...]
    code: int
    out: str
    err: str
    left: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        """The error ids, in order: of stderr, or of the JSON document, in which some commands tell of them alone."""
        return _ID.findall(self.err) or _ID.findall(self.out)


def judged(command: list[str], scratch: Path) -> Outcome:
    """Run a command line in this process; raises BadOutcome for a traceback, a defect (QF999), an exit code that is
    not the error's own, an id that is not documented, or a temporary file left behind.
    """
    said, complained = io.StringIO(), io.StringIO()
    with _surroundings(scratch) as left, redirect_stdout(said), redirect_stderr(complained):
        code = run(command)
    outcome = Outcome(tuple(command), code, said.getvalue(), complained.getvalue(), left)
    fault = _fault(outcome)
    if fault is not None:
        texts = "\n".join(f"--- {name}\n{text}" for name, text in outcome.left.items())
        raise BadOutcome(f"{fault}\n$ qnn-forge {' '.join(command)}\n[{code}] {outcome.err}\n{texts}")
    return outcome


def _fault(outcome: Outcome) -> str | None:
    ids = outcome.ids
    if "Traceback" in outcome.out + outcome.err or "QF999" in ids or outcome.code == ExitCode.INTERNAL:
        return "a defect shows"
    if unknown := sorted({id_ for id_ in ids if id_ not in _codes()}):
        return f"{unknown[0]} is no documented id"
    if outcome.left and not _NAMES_A_LOG.search(outcome.err + outcome.out):
        return f"left behind: {', '.join(outcome.left)}"
    return None if outcome.code == 0 or outcome.command[0] == "lint" else _fault_of_error(outcome)


def _fault_of_error(outcome: Outcome) -> str | None:
    if not outcome.ids:
        return "it failed without an id"
    code = _codes()[outcome.ids[0]]
    if outcome.code != code:
        return f"exit code {outcome.code}, but {outcome.ids[0]} has {code}"
    return None if "remedy: " in outcome.err or not outcome.err else "it failed without a remedy"


@cache
def _codes() -> Mapping[str, int]:
    """The exit code of every documented id; a lint hint has 0."""
    found = {page.id: _CODE.search(page.kind) for page in pages()}
    return {id_: int(code[1]) if code else 0 for id_, code in found.items()}


@contextmanager
def _surroundings(scratch: Path) -> Iterator[dict[str, str]]:
    """A cache, no network, and a temporary folder of its own: the mapping given then holds what is in that in the end,
    and it is empty again.
    """
    folder = scratch / "tmp"
    folder.mkdir(exist_ok=True)
    nowhere = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9")
    left: dict[str, str] = {}
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        with patch.dict(os.environ, nowhere, QNN_FORGE_CACHE=str(scratch / "cache")):
            yield left
    finally:
        tempfile.tempdir = before
        for path in sorted(folder.rglob("*"), reverse=True):
            left[path.relative_to(folder).as_posix()] = (
                "" if path.is_dir() else path.read_text(errors="replace")[-4000:]
            )
            path.rmdir() if path.is_dir() else path.unlink()
