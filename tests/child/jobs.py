"""Jobs that the tests run inside a host: each behaves as vendor code can."""

import os
import subprocess
import sys
import time
from pathlib import Path

from qnn.errors.base import ExitCode, ForgeError


class Planned(ForgeError):
    """What: a. Why: b. Mend: c."""

    id = "QF998"
    title = "planned by a test"
    exit_code = ExitCode.GRAPH


def double(value: int) -> int:
    print("noise on stdout")
    return 2 * value


def segfault(_: object) -> None:
    print("about to abort", flush=True)
    os.abort()


def hang(_: object) -> None:
    time.sleep(600)


def eat(size: int) -> None:
    hoard = bytearray(size)
    time.sleep(600)
    del hoard


def leave_a_child(pid_file: str) -> int:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(pid_file).write_text(str(child.pid))
    return child.pid


def fail_on_purpose(message: str) -> None:
    raise Planned(message, remedy="none")


def raise_value_error(message: str) -> None:
    raise ValueError(message)


def pid(_: object) -> int:
    return os.getpid()


def quit_silently(_: object) -> None:
    os._exit(3)


def announce_and_hang(pid_file: str) -> None:
    partial = Path(f"{pid_file}.part")
    partial.write_text(f"{os.getpid()} {os.getppid()}")
    partial.rename(pid_file)
    time.sleep(600)


def fill_the_disk(path: str) -> None:
    Path(path).write_bytes(bytes(1 << 20))
