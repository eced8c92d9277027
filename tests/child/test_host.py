"""One crash, hang or memory hog in a child is one clear error in the parent, and the next job still runs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from qnn.child import Host, Limits, wire
from qnn.errors.child import ChildCrashed, ChildOutOfMemory, ChildTimedOut
from qnn.errors.system import DiskFull
from tests.child.jobs import Planned

GENEROUS = Limits(seconds=60, memory_bytes=4 << 30)


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host(preload=())
    yield host
    host.close()


def test_value_comes_back_and_stdout_goes_to_the_log(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    assert host.call("tests.child.jobs:double", 21, log=log, limits=GENEROUS) == 42
    assert log.read_text() == "noise on stdout\n"
    assert host.usage.peak_bytes > 1 << 20


def test_each_job_is_a_fresh_fork_of_one_host(host: Host, tmp_path: Path) -> None:
    pids = [host.call("tests.child.jobs:pid", None, log=tmp_path / "log", limits=GENEROUS) for _ in range(3)]
    assert len(set(pids)) == 3
    assert os.getpid() not in pids


def test_abort_names_the_signal_keeps_the_log_and_the_host_lives_on(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with pytest.raises(ChildCrashed, match="killed by SIGABRT") as caught:
        host.call("tests.child.jobs:segfault", None, log=log, limits=GENEROUS)
    assert caught.value.log == log
    assert "| about to abort" in caught.value.details
    assert host.call("tests.child.jobs:double", 1, log=log, limits=GENEROUS) == 2


def test_exit_without_a_result_is_a_crash(host: Host, tmp_path: Path) -> None:
    with pytest.raises(ChildCrashed, match="exit code 3 and no result"):
        host.call("tests.child.jobs:quit_silently", None, log=tmp_path / "log", limits=GENEROUS)


def test_hang_is_stopped_at_the_limit(host: Host, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(ChildTimedOut, match=r"hang did not end within 1 s"):
        host.call("tests.child.jobs:hang", None, log=tmp_path / "log", limits=Limits(seconds=1))
    assert time.monotonic() - began < 60
    assert host.call("tests.child.jobs:double", 4, log=tmp_path / "log", limits=GENEROUS) == 8


def test_memory_hog_is_stopped_at_the_limit(host: Host, tmp_path: Path) -> None:
    with pytest.raises(ChildOutOfMemory, match=r"over its limit of 0.2 GB"):
        host.call(
            "tests.child.jobs:eat", 600 << 20, log=tmp_path / "log", limits=Limits(seconds=60, memory_bytes=200 << 20)
        )


def test_forge_errors_cross_whole_and_others_become_a_crash(host: Host, tmp_path: Path) -> None:
    with pytest.raises(Planned, match="as planned") as caught:
        host.call("tests.child.jobs:fail_on_purpose", "as planned", log=tmp_path / "log", limits=GENEROUS)
    assert caught.value.remedy == "none"
    with pytest.raises(ChildCrashed, match="ValueError: odd"):
        host.call("tests.child.jobs:raise_value_error", "odd", log=tmp_path / "log", limits=GENEROUS)
    assert "Traceback" in (tmp_path / "log").read_text()


def test_a_full_disk_in_a_job_is_a_full_disk(host: Host, tmp_path: Path, small_disk: Path) -> None:
    with pytest.raises(DiskFull, match="no space left"):
        host.call("tests.child.jobs:fill_the_disk", str(small_disk / "big"), log=tmp_path / "log", limits=GENEROUS)


def test_a_job_that_ends_before_the_parent_looks_is_not_waited_for(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both answers are in the pipe before the first is read; a buffered reader would take both and wait for a third.
    def slow_receive(stream: BinaryIO) -> object:
        time.sleep(0.3)
        return wire.receive(stream)

    monkeypatch.setattr("qnn.child.client.receive", slow_receive)
    short = Limits(seconds=5)
    assert host.call("tests.child.jobs:double", 3, log=tmp_path / "log", limits=short) == 6


def test_what_a_job_started_does_not_outlive_it(host: Host, tmp_path: Path) -> None:
    host.call("tests.child.jobs:leave_a_child", str(tmp_path / "pid"), log=tmp_path / "log", limits=GENEROUS)
    assert _gone(int((tmp_path / "pid").read_text()))


def test_job_and_host_die_with_a_killed_parent(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from qnn.child import Host, Limits\n"
        "Host(preload=()).call('tests.child.jobs:announce_and_hang', sys.argv[1], log=Path(sys.argv[1] + '.log'),"
        " limits=Limits())"
    )
    pid_file = tmp_path / "pid"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    parent = subprocess.Popen([sys.executable, "-c", script, str(pid_file)], env=environment)
    deadline = time.monotonic() + 30
    while not pid_file.exists() or not pid_file.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    job, host = (int(part) for part in pid_file.read_text().split())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert _gone(job)
    assert _gone(host)


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
