"""The host process: imports the slow libraries once, then forks one child per job.

Forking per job is not only for speed. The compiler keeps process-wide state: the second graph compiled in one
process gives other bytes than the first (measured with QAIRT 2.51), so every job must start from the same fresh
state for builds to be reproducible. The host never calls into vendor code itself.

Run as ``python -m qnn.child.host MODULE…`` with requests on stdin and answers on the file descriptor named by
QNN_FORGE_REPLY_FD. When stdin closes (the parent is gone, however it died) the running job is killed.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, NoReturn

from qnn.child.wire import Ended, Outcome, Request, Started, receive, send
from qnn.errors import ForgeError
from qnn.errors.system import from_os_error

_PR_SET_PDEATHSIG = 1


def main(preload: list[str]) -> int:
    """Serve requests until the parent closes the pipe."""
    replies = os.fdopen(int(os.environ.pop("QNN_FORGE_REPLY_FD")), "wb")
    requests = sys.stdin.buffer
    libc = ctypes.CDLL(None, use_errno=True)
    for name in preload:
        importlib.import_module(name)
    while True:
        try:
            request = receive(requests)
        except EOFError:
            return 0
        pid = os.fork()
        if pid == 0:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            _run(request)
        send(replies, Started(pid))
        _wait(pid, requests, replies)


def _wait(pid: int, requests: BinaryIO, replies: BinaryIO) -> None:
    """Wait for the job, or kill it when the parent disappears (its next request cannot come before our answer)."""
    pidfd = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([pidfd, requests.fileno()], [], [])
        if pidfd not in ready:
            _kill_group(pid)
        _, status, usage = os.wait4(pid, 0)
    finally:
        os.close(pidfd)
    _kill_group(pid)  # whatever the job itself started
    try:
        send(replies, Ended(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024))
    except BrokenPipeError:
        sys.exit(0)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _run(request: Request) -> NoReturn:
    """The forked child: never returns, never runs the host's exit handlers."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        log = os.open(request.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if request.cwd is not None:
            os.chdir(request.cwd)
        _leave(request.result_file, _outcome(request))
        code = 0
        with suppress(OSError):  # the log's disk may be full; what happened is told already
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code)


def _outcome(request: Request) -> Outcome:
    try:
        return Outcome(value=_resolve(request.function)(request.argument))
    except ForgeError as error:
        return Outcome(error=error)
    except OSError as error:
        _log_traceback()
        return Outcome(error=from_os_error(error))
    except BaseException as error:  # noqa: BLE001 - a job boundary: the parent turns what is left here into one error of its own
        _log_traceback()
        last = traceback.format_exception_only(error)[-1].strip()
        return Outcome(exception=last)


def _log_traceback() -> None:
    with suppress(OSError):
        traceback.print_exc()


def _resolve(function: str) -> Callable[[Any], Any]:
    module, _, name = function.partition(":")
    found: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    return found


def _leave(path: str, outcome: Outcome) -> None:
    partial = f"{path}.part"
    with open(partial, "wb") as stream:
        pickle.dump(outcome, stream, protocol=pickle.HIGHEST_PROTOCOL)
    os.replace(partial, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
