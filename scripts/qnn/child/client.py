"""The parent's side: start hosts, run one job in each at a time, watch time and memory, name what went wrong."""

from __future__ import annotations

import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnn.child.wire import Ended, Outcome, Request, Started, receive, send
from qnn.errors.child import ChildCrashed, ChildOutOfMemory, ChildTimedOut

# What nearly every job needs; importing it once per host instead of once per job saves about 0.3 s of CPU a job. onnx
# is not among it: the emulator's job, the largest of a build, does without, and stays 20 MB smaller.
PRELOAD = ("numpy", "onnxruntime")
_POLL_SECONDS = 0.05
_LOG_TAIL_LINES = 8


@dataclass(frozen=True)
class Limits:
    """What one job may use: wall seconds and resident bytes (the job and everything it starts)."""

    seconds: float = 1200.0
    memory_bytes: int = 16 << 30


@dataclass(frozen=True)
class Usage:
    """What one job used: wall seconds, CPU seconds, peak resident bytes."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


class Host:
    """One host process. Not for concurrent use: one job at a time (see HostPool)."""

    def __init__(self, preload: Sequence[str] = PRELOAD) -> None:
        self._preload = tuple(preload)
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: Any = None
        self.usage = Usage(0.0, 0.0, 0)

    def call(self, function: str, argument: object, *, log: Path, limits: Limits, cwd: Path | None = None) -> Any:
        """Run ``module:function`` with `argument` in a fresh fork and return what it returns.

        stdout and stderr are appended to `log`. Raises the ForgeError the function raised; ChildCrashed (QF501)
        when it died or raised anything else, ChildTimedOut (QF502) and ChildOutOfMemory (QF503) at a limit.
        """
        process = self.start()
        log.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="qnn-forge-job-") as folder:
            result = Path(folder) / "result"
            request = Request(
                function, argument, str(log.absolute()), str(result), None if cwd is None else str(cwd.absolute())
            )
            began = time.monotonic()
            try:
                assert process.stdin is not None
                send(process.stdin, request)  # type: ignore[arg-type]
                started: Started = receive(self._replies)
                ended = self._watch(started.pid, limits, function, log)
            except (EOFError, BrokenPipeError):
                self.close()
                raise _crashed(function, "the host process died", log) from None
            except BaseException:
                self.close()  # the job is killed with its host, so nothing outlives an interrupt
                raise
            self.usage = Usage(time.monotonic() - began, ended.cpu_seconds, ended.peak_bytes)
            return _value(function, ended, result, log)

    def close(self) -> None:
        """End the host, and with it a job that may be running."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            with suppress(BrokenPipeError):  # it is gone already, which is what we want
                process.stdin.close()
        self._replies.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Kill the host, and with it a job that may be running; safe from another thread than the caller's."""
        process = self._process
        if process is not None:
            process.kill()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the host unless it runs; what it imports is not waited for."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        read_fd, write_fd = os.pipe()
        # Without the second, ONNX Runtime 1.32 keeps a device id and a queue of events in the home folder.
        environment = dict(os.environ, QNN_FORGE_REPLY_FD=str(write_fd), ORT_DISABLE_TELEMETRY="1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "qnn.child.host", *self._preload],
            stdin=subprocess.PIPE,
            env=environment,
            pass_fds=(write_fd,),
            start_new_session=True,  # Ctrl-C reaches the parent only, which then ends hosts in order
        )
        os.close(write_fd)
        # Unbuffered: a buffer would swallow a second message, and select() would then wait for what has come.
        self._replies = os.fdopen(read_fd, "rb", buffering=0)
        return self._process

    def _watch(self, pid: int, limits: Limits, function: str, log: Path) -> Ended:
        deadline = time.monotonic() + limits.seconds
        while True:
            ready, _, _ = select.select([self._replies], [], [], _POLL_SECONDS)
            if ready:
                ended: Ended = receive(self._replies)
                return ended
            resident = _resident_bytes(pid)
            if resident > limits.memory_bytes:
                self._end_job(pid)
                raise ChildOutOfMemory(
                    f"{_what(function)} used {resident / 2**30:.1f} GB, over its limit of "
                    f"{limits.memory_bytes / 2**30:.1f} GB, and was stopped",
                    remedy="raise limits.memory_gb in model.yaml, run with fewer --jobs, or use a smaller bucket",
                    log=log,
                )
            if time.monotonic() > deadline:
                self._end_job(pid)
                raise ChildTimedOut(
                    f"{_what(function)} did not end within {limits.seconds:.0f} s and was stopped",
                    remedy="raise limits.minutes in model.yaml, or simplify the graph (long LSTMs compile slowly)",
                    details=_tail(log),
                    log=log,
                )

    def _end_job(self, pid: int) -> None:
        with suppress(ProcessLookupError):  # it ended between the look and the kill
            os.killpg(pid, signal.SIGKILL)
        receive(self._replies)


class HostPool:
    """As many hosts as jobs may run at once; all are started when the first is needed, so that none is waited for."""

    def __init__(self, size: int, preload: Sequence[str] = PRELOAD) -> None:
        self._starting, self._started = threading.Lock(), False
        self._idle: queue.LifoQueue[Host] = queue.LifoQueue()
        self._all = [Host(preload) for _ in range(size)]
        for host in reversed(self._all):
            self._idle.put(host)

    @contextmanager
    def host(self) -> Iterator[Host]:
        """Borrow a host; blocks while all are at work."""
        host = self._idle.get()
        try:
            self._start_all()
            yield host
        finally:
            self._idle.put(host)

    def _start_all(self) -> None:
        with self._starting:
            if not self._started:
                self._started = True
                for host in self._all:
                    host.start()

    def abort(self) -> None:
        """Kill every host and job at once, from any thread; whoever waits for one sees ChildCrashed."""
        for host in self._all:
            host.kill()

    def __enter__(self) -> HostPool:
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._all:
            host.close()


def _value(function: str, ended: Ended, result: Path, log: Path) -> Any:
    if not result.exists():
        raise _crashed(function, _how_it_died(ended.status), log)
    outcome: Outcome = pickle.loads(result.read_bytes())  # noqa: S301 - our own child wrote it (see wire.py)
    if outcome.error is not None:
        if outcome.error.log is None:
            outcome.error.log = log
        raise outcome.error
    if outcome.exception is not None:
        raise _crashed(function, outcome.exception, log)
    return outcome.value


def _crashed(function: str, how: str, log: Path) -> ChildCrashed:
    return ChildCrashed(
        f"{_what(function)} failed: {how}",
        remedy="read the log; if the same input fails again, report it with the log and the model.yaml",
        details=_tail(log),
        log=log,
    )


def _how_it_died(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit code {os.waitstatus_to_exitcode(status)} and no result"


def _what(function: str) -> str:
    return function.rpartition(":")[2].replace("_", " ")


def _tail(log: Path) -> list[str]:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [f"| {line[:300]}" for line in lines[-_LOG_TAIL_LINES:]]


def _resident_bytes(pid: int) -> int:
    """Resident bytes of a job's process group, from /proc; 0 when it is gone.

    Shared pages count in every process, so a job that forks is over-counted, never under-counted.
    """
    total = 0
    for process in (pid, *_descendants(pid)):
        try:
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += pages * os.sysconf("SC_PAGE_SIZE")
    return total


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [found for child in children for found in (child, *_descendants(child))]
