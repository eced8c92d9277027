"""Kill pulls with SIGKILL at random moments; each second try must complete without a byte that it had already.

Run by hand or by a workflow: ``python -m tests.chaos.kill_pulls [COUNT] [SEED]``; prints one line a pull and a summary,
exit code 1 when any pull left something visible that is not whole, or fetched a byte twice. A short run of the same
code is part of the test command.

The server sends the archive slowly, so that most kills come while it does.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from qnn.bundle.recheck import check_files, read_manifest
from tests.pull.conftest import FILES, Shop
from tests.sources import fake_server as fake
from tests.sources.fake_server import FakeServer, serving

SIZE = 2_000_000
_PIECE = 20_000
_PAUSE = 0.004  # seconds between pieces: about half a second for all


@dataclass
class Sender:
    """Sends a file slowly, from where it is asked to, and counts the bytes of each request by where they begin."""

    content: bytes
    begins: list[int] = field(default_factory=list)

    def route(self, handler: fake.Handler) -> None:
        found = re.fullmatch(r"bytes=(\d+)-", handler.seen.headers.get("range", ""))
        begin = int(found[1]) if found else 0
        self.begins.append(begin)
        total = len(self.content)
        if begin:
            span = f"bytes {begin}-{total - 1}/{total}"
            handler.head(206, Content_Length=total - begin, Content_Range=span, ETag='"v1"')
        else:
            handler.head(200, Content_Length=total, ETag='"v1"')
        for start in range(begin, total, _PIECE):
            handler.body(self.content[start : start + _PIECE])
            handler.wfile.flush()
            time.sleep(_PAUSE)


@dataclass(frozen=True)
class Bench:
    """A served index and what its archive's requests were."""

    base: str
    sender: Sender
    bundle: str


@contextmanager
def bench(root: Path) -> Iterator[Bench]:
    """A server of an index with one archive."""
    shop = Shop(root)
    file = shop.publish(size=SIZE)
    with serving() as server:
        shop.serve(server)
        sender = Sender((shop.index / FILES / file.name).read_bytes())
        _route(server, f"/{FILES}/{file.name}", sender)
        yield Bench(server.url(""), sender, file.name.removesuffix(".tar.gz"))


def _route(server: FakeServer, path: str, sender: Sender) -> None:
    server.routes[path] = sender.route


def pull(bench: Bench, folder: Path) -> subprocess.Popen[bytes]:
    """A pull with its cache and its output in `folder`."""
    command = [sys.executable, "-m", "tests.pull.pull_once", bench.base, str(folder / "out"), str(folder / "cache")]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def finish(bench: Bench, folder: Path) -> float:
    """Pull to the end; returns the seconds it took. Raises CalledProcessError with stderr when it fails."""
    began = time.monotonic()
    process = pull(bench, folder)
    _, errors = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args, stderr=errors.decode())
    return time.monotonic() - began


def kill_once(bench: Bench, folder: Path, seconds: float) -> bool:
    """Kill a pull after `seconds`; False when it had ended by itself before."""
    process = pull(bench, folder)
    time.sleep(seconds)
    if process.poll() is not None:
        process.communicate()
        return False
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return True


def visible(bench: Bench, folder: Path) -> bool:
    """Whether all that can be seen in the output folder is whole: nothing, or the bundle as its manifest says."""
    out = folder / "out"
    seen = [path for path in out.iterdir() if not path.name.startswith(".")] if out.exists() else []
    for path in seen:
        check_files(path, read_manifest(path))
    return [path.name for path in seen] in ([], [bench.bundle])


def had(folder: Path) -> int:
    """Bytes of the archive that the killed pull had: of the unfinished download or of the whole one."""
    files = (folder / "cache" / "artefacts").glob("*/*")
    sizes = [path.stat().st_size for path in files if path.name in ("partial", "body")]
    return max([size for size in sizes if size > _PIECE] or [0])


@dataclass
class Tally:
    """What came of all pulls."""

    killed: int = 0
    wrong: int = 0
    resumed: int = 0  # second tries that went on in the middle of the archive
    spared: int = 0  # second tries that needed nothing of it any more
    bytes_saved: int = 0


def run(count: int, seed: int) -> Tally:
    """Kill `count` pulls and finish each."""
    chance, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory(prefix="qnn-forge-chaos-") as scratch, bench(Path(scratch) / "shop") as stand:
        whole = finish(stand, Path(scratch) / "calm")
        while tally.killed < count:
            folder = Path(scratch) / "try"
            moment = chance.uniform(0.3 * whole, whole)
            if kill_once(stand, folder, moment):
                _second_try(stand, folder, moment, tally)
            shutil.rmtree(folder)
    print(
        f"{tally.killed} pulls killed: {tally.killed - tally.wrong} left nothing half-visible and were completed "
        f"without a byte twice ({tally.resumed} went on in the middle, {tally.spared} had it all, "
        f"{tally.bytes_saved / 1e6:.1f} MB not sent again), {tally.wrong} did not"
    )
    return tally


def _second_try(stand: Bench, folder: Path, moment: float, tally: Tally) -> None:
    clean, begun = visible(stand, folder), had(folder)
    stand.sender.begins.clear()
    finish(stand, folder)
    asked = list(stand.sender.begins)
    total = len(stand.sender.content)
    saved = begun if begun < total else total
    good = asked == ([] if saved == total else [saved])
    complete = os.listdir(folder / "out") == [stand.bundle] and visible(stand, folder)
    tally.killed += 1
    tally.wrong += not (clean and good and complete)
    tally.resumed += 0 < saved < total
    tally.spared += saved == total
    tally.bytes_saved += saved
    word = "as it should" if clean and good and complete else "WRONG"
    print(f"{tally.killed:3d} killed at {moment:5.2f} s with {saved:8d} bytes, asked for {asked}: {word}", flush=True)


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    sys.exit(bool(run(arguments[0] if arguments else 50, arguments[1] if len(arguments) > 1 else 0).wrong))
