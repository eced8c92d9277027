"""Wheels from a package index, through pip itself, so that every setting of pip works: mirrors, proxies, logins.

pip runs as a child process and only downloads wheels: a source distribution would have to be run to be opened.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import InvalidVersion, Version

from qnn.errors.sources import (
    AddressUnusable,
    HostUnreachable,
    PipFailed,
    RateLimited,
    ServerFault,
    SourceError,
    SourceForbidden,
    SourceNotFound,
    SourceTimedOut,
    SourceTooBig,
    TlsFailed,
    TransferBroken,
)
from qnn.model.spec import Source
from qnn.sources.protocol import Order, describe, download_limit, printable
from qnn.sources.shelf import Shelved

_LOCATOR = re.compile(r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==(?P<version>[A-Za-z0-9.+!_-]+)")
_POLL_SECONDS = 0.1
_SHOWN_LINES = 8
# Lines in which pip says what went wrong. Not those about retries: a later try may have worked.
_TELLING = re.compile(
    r"ERROR|error:|Could not fetch URL|pip\._(?:vendor|internal)\.\S*(?:Error|Exception)\b|TimeoutError"
)
# What those lines hold, in the order in which it decides. A failed connection comes before the lack of versions that
# follows from it.
_SIGNS: tuple[tuple[str, type[SourceError], str, str], ...] = (
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError|ssl certificate",
        TlsFailed,
        "the package index's certificate is not accepted",
        "add the certificate to the system's store or name it with PIP_CERT",
    ),
    (
        r"Read timed out|ReadTimeout|ConnectTimeout|didn't respond within|TimeoutError",
        SourceTimedOut,
        "the package index does not answer in time",
        "run the same command again, or raise PIP_DEFAULT_TIMEOUT",
    ),
    (
        r"NewConnectionError|connection error:|Connection refused|ProxyError|RemoteDisconnected",
        HostUnreachable,
        "the package index cannot be reached",
        "check the network, PIP_INDEX_URL and, behind a proxy, HTTPS_PROXY",
    ),
    (
        r"\b(?:401|403) Client Error",
        SourceForbidden,
        "the package index refuses access",
        "give pip a login for the index (pip's configuration, or netrc)",
    ),
    (r"\b429 Client Error|too many 429", RateLimited, "the package index limits requests", "try again later"),
    (r"\b5\d\d Server Error|too many 5\d\d", ServerFault, "the package index failed", "try again later"),
    (
        r"incomplete-download|IncompleteRead|Wheel .* is invalid",
        TransferBroken,
        "the wheel came incomplete or damaged",
        "run the same command again",
    ),
    (
        r"No matching distribution found|\b404 Client Error",
        SourceNotFound,
        "the index has no wheel of this version",
        "check name and version; versions with only a source distribution cannot be used, as opening one runs its code",
    ),
    (r"No module named pip\b", PipFailed, "this Python has no pip", "install it: python -m ensurepip"),
)


class PypiFetcher:
    """`pypi: name==version`. The wheel is kept whole, so that it serves every file wanted from it.

    `options` are further options of `pip download`, as those that ask for another platform's wheel. Downloads that
    differ in them need slots of their own.
    """

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        self._options = options

    def address(self, source: Source) -> str:
        """Normalised name and version. Raises AddressUnusable for anything else, as extras, ranges and options."""
        found = _LOCATOR.fullmatch(source.locator)
        try:
            if found is None:
                raise InvalidVersion(source.locator)
            return f"pypi:{canonicalize_name(found['name'])}=={canonicalize_version(Version(found['version']))}"
        except InvalidVersion:
            raise AddressUnusable(
                f"{describe(source)}: the address is not of the form name==version",
                remedy="pin one exact version, as in rapidocr-onnxruntime==1.4.4",
            ) from None

    def obtain(self, order: Order) -> Shelved:
        """The wheel, from the slot if it is there: an index does not replace files."""
        found = order.slot.find()
        if found is not None:
            return found
        with order.slot.workshop() as folder:
            return order.slot.keep(_download(order, folder, self._options))


def _download(order: Order, folder: Path, options: tuple[str, ...]) -> Path:
    wheels, temporary, log = folder / "wheels", folder / "tmp", folder / "log"
    temporary.mkdir()
    # -P: otherwise a pip.py in the current folder, which may be a model's, would run in pip's place.
    command = [sys.executable, "-P", "-m", "pip", *_OPTIONS, *options, "-d", str(wheels), order.source.locator]
    # pip unpacks into TMPDIR: here it lies on the disk of the downloads, and its growth can be watched.
    environment = dict(os.environ, TMPDIR=str(temporary))
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = _watch(process, order, temporary)
        finally:
            _end(process)
    found = sorted(wheels.glob("*.whl"))
    if status == 0 and len(found) == 1:
        _check_size(order, found[0].stat().st_size)
        return found[0]
    raise _fault(order, options, log.read_text(encoding="utf-8", errors="replace"), status)


_OPTIONS = (
    *("download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--no-input"),
    # Nothing is installed, so what the wheel requires of Python does not matter.
    *("--ignore-requires-python", "--progress-bar", "off"),
    "-vv",  # otherwise pip does not say that an index failed, only that it found no version
)


def _watch(process: subprocess.Popen[bytes], order: Order, temporary: Path) -> int:
    """pip's exit code, once it ends; reports how much has come, and stops it at a limit."""
    deadline = time.monotonic() + order.policy.pip_timeout
    while True:
        try:
            return process.wait(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            count = _bytes_in(temporary)
        order.progress.advance(order.source.name, count, None)
        _check_size(order, count)
        if time.monotonic() > deadline:
            raise SourceTimedOut(
                f"{order.what}: pip did not end within {order.policy.pip_timeout:.0f} s",
                remedy="run the same command again, or run pip download by hand and see where it stops",
            )


def _check_size(order: Order, count: int) -> None:
    limit = download_limit(order.source, order.policy)
    if count > limit:
        raise SourceTooBig(
            f"{order.what}: the wheel has more than the {limit} bytes that are accepted",
            remedy="for a wheel that is meant to be so big run qnn-forge pin --max-gb N",
        )


def _bytes_in(folder: Path) -> int:
    """Bytes of all files below a folder in which pip is at work: what vanishes between look and count is not there."""
    total = 0
    for parent, _, files in os.walk(folder):  # which passes over folders that are gone
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):  # it may end by itself just now
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _fault(order: Order, options: tuple[str, ...], log: str, status: int) -> SourceError:
    lines = [printable(line.strip()[:300]) for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.match(line)] or lines
    details = tuple(f"| {line}" for line in telling[-_SHOWN_LINES:])
    if "No space left on device" in log:
        raise OSError(errno.ENOSPC, "No space left on device", str(order.slot.folder))
    for pattern, kind, problem, remedy in _SIGNS:
        if any(re.search(pattern, line) for line in telling):
            return kind(f"{order.what}: {problem}", remedy=remedy, details=details)
    return PipFailed(
        f"{order.what}: pip ended with exit code {status}",
        remedy=f"run it by hand: python -m pip {shlex.join([*_OPTIONS, *options])} {order.source.locator}",
        details=details,
    )
