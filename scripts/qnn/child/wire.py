"""What the parent and the host say to each other, and how: length-prefixed pickles over pipes.

Pickle is safe here because both ends are this package running as the same user; code that came with a model never
runs in a host (see qnn.model_code), and nothing read from disk or network is unpickled.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Request:
    """One job: ``package.module:function`` called with one argument, in a fork of the host.

    `result_file` receives the pickled `Outcome`; stdout and stderr go to `log_file`.
    """

    function: str
    argument: Any
    log_file: str
    result_file: str
    cwd: str | None


@dataclass(frozen=True)
class Started:
    """The job runs as this process id (also its process group)."""

    pid: int


@dataclass(frozen=True)
class Ended:
    """How the job ended: wait status as of os.waitpid, CPU seconds (user + system), peak resident bytes."""

    status: int
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Outcome:
    """What the job left: a value, or an exception (a ForgeError as it is; anything else as its last line)."""

    value: Any = None
    error: Any = None
    exception: str | None = None


def send(stream: BinaryIO, message: object) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message; raises EOFError when the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    data = _exactly(stream, length)
    return pickle.loads(data)  # noqa: S301 - see the module's docstring


def _exactly(stream: BinaryIO, count: int) -> bytes:
    """So many bytes of a stream that may give fewer at a time; raises EOFError."""
    parts = []
    while count:
        part = stream.read(count)
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
