"""Kill builds with SIGKILL at random moments; each must be finished by a second try, to the same bytes.

Run by hand or by a workflow: ``python -m tests.chaos.kill_builds [COUNT] [SEED]``; prints one line a build and a
summary, exit code 1 when any build came out different. A short run of the same code is part of the test command.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from qnn.store import file_digest

MODEL = Path(__file__).resolve().parents[2] / "models" / "silero-vad"
CHIPS = "SM8550,SM8650,SM8750"


def build(folder: Path) -> subprocess.Popen[bytes]:
    """A build with its store and its output in `folder`, in a process group of its own."""
    command = [
        sys.executable, "-m", "qnn.cli", "build", str(MODEL), "--soc", CHIPS,
        "--store", str(folder / "store"), "--out", str(folder / "dist"),
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def bytes_of(folder: Path) -> dict[str, str]:
    """sha256 of every file that the build put into its output folder."""
    dist = folder / "dist"
    return {
        path.relative_to(dist).as_posix(): file_digest(path)
        for path in sorted(dist.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def finish(folder: Path) -> dict[str, str]:
    """Build to the end; raises CalledProcessError with stderr when it fails."""
    process = build(folder)
    _, errors = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args, stderr=errors.decode())
    return bytes_of(folder)


def kill_once(folder: Path, seconds: float) -> bool:
    """Kill a build after `seconds`; False when it had ended by itself before."""
    process = build(folder)
    time.sleep(seconds)
    if process.poll() is not None:
        process.communicate()
        return False
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return True


def run(count: int, seed: int, seeded_downloads: Path | None = None) -> int:
    """Kill `count` builds; returns how many ended in other bytes than an undisturbed build.

    `seeded_downloads` is a downloads folder to start from, so that not every try fetches the wheels again.
    """
    chance = random.Random(seed)
    killed = different = 0
    with tempfile.TemporaryDirectory(prefix="qnn-forge-chaos-") as scratch:
        first, calm = Path(scratch) / "first", Path(scratch) / "calm"
        _seed(first, seeded_downloads)
        wanted = finish(first)
        assert wanted
        downloads = first / "store" / "downloads"
        _seed(calm, downloads)
        began = time.monotonic()
        finish(calm)
        whole = time.monotonic() - began
        while killed < count:
            folder = Path(scratch) / "try"
            _seed(folder, downloads)
            moment = chance.uniform(0.05, whole)
            if kill_once(folder, moment):
                left = bytes_of(folder)
                whole_or_absent = all(left[name] == wanted[name] for name in left.keys() & wanted.keys())
                same = finish(folder) == wanted and whole_or_absent
                different += not same
                print(f"{killed:3d} killed at {moment:5.2f} s: {'same bytes' if same else 'DIFFERENT'}", flush=True)
                killed += 1
            shutil.rmtree(folder)
    print(f"{count} builds killed, {count - different} resumed to the same bytes, {different} did not")
    return different


def _seed(folder: Path, downloads: Path | None) -> None:
    (folder / "store").mkdir(parents=True)
    if downloads is not None and downloads.exists():
        shutil.copytree(downloads, folder / "store" / "downloads", copy_function=os.link)


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    sys.exit(bool(run(arguments[0] if arguments else 30, arguments[1] if len(arguments) > 1 else 0)))
