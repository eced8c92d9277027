"""What a command costs: CPU seconds of it and all it starts, and the peak resident memory of the whole tree."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """Wall and CPU in seconds; `peak_bytes` is the largest proportional set size (shared pages split) of the tree."""

    wall: float
    cpu: float
    peak_bytes: int


_NOT_A_USERS = "PYTHONDONTWRITEBYTECODE"  # where it is set, every start compiles every module anew


def cost_of(command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, every: float = 0.05) -> Cost:
    """Run a command to its end; raises CalledProcessError with its output when it fails.

    Memory is looked at `every` so many seconds. A look holds up the processes it looks at, which tells where more of
    them run than there are cores: a benchmark of wall time looks less often.
    """
    began = time.monotonic()
    with (cwd / "output.txt").open("w+") as output:
        environment = {name: value for name, value in (env or os.environ).items() if name != _NOT_A_USERS}
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT)
        peak = _Peak(process.pid, every)
        peak.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        peak.stop()
        if process.returncode:
            output.seek(0)
            raise subprocess.CalledProcessError(process.returncode, list(command), output.read())
    return Cost(time.monotonic() - began, usage.ru_utime + usage.ru_stime, peak.bytes)


class _Peak(threading.Thread):
    def __init__(self, pid: int, every: float) -> None:
        super().__init__(daemon=True)
        self._pid, self._every = pid, every
        self._done = threading.Event()
        self.bytes = 0

    def run(self) -> None:
        while not self._done.wait(self._every):
            self.bytes = max(self.bytes, sum(_proportional_bytes(pid) for pid in _tree(self._pid)))

    def stop(self) -> None:
        self._done.set()
        self.join()


def _tree(pid: int) -> list[int]:
    found = [pid]
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return found
    for task in tasks:
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            found += _tree(int(child))
    return found


def _proportional_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # it ended between the look and the read
    return 0
