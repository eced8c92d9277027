"""Read several files that may be context binaries, in child jobs, and keep what went wrong apart from what was read."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.binary.info import ContextBinary
from qnn.binary.qnn_system import inspect_file
from qnn.child import Host
from qnn.errors.base import ForgeError, Place
from qnn.errors.child import ChildCrashed


@dataclass(frozen=True)
class Inspected:
    """What became of each file, in the order given: the binaries that were read, and the errors of the others."""

    read: tuple[tuple[Path, ContextBinary], ...]
    failed: tuple[tuple[Path, ForgeError], ...]


def inspect_files(paths: Sequence[Path]) -> Inspected:
    """Read each file in a job of its own; never raises for a file (QF501, QF600 to QF605 are in `failed`).

    Vendor code's log is kept in the temporary folder only when it crashed; then the error names it.
    """
    read: list[tuple[Path, ContextBinary]] = []
    failed: list[tuple[Path, ForgeError]] = []
    log = Path(tempfile.mkdtemp(prefix="qnn-forge-inspect-")) / "log.txt"
    host = Host(preload=())
    try:
        for path in paths:
            try:
                read.append((path, inspect_file(path, host, log=log)))
            except ForgeError as error:
                failed.append((path, error.at(Place(str(path)))))
    finally:
        host.close()
    if not any(isinstance(error, ChildCrashed) for _, error in failed):
        log.unlink(missing_ok=True)
        log.parent.rmdir()
        for _, failure in failed:
            failure.log = None
    return Inspected(tuple(read), tuple(failed))
