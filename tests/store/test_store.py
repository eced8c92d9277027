"""The store: whole or absent, one maker at a time, damage noticed, a kill at any moment survived."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.errors.system import DiskFull, NotWritable, StoreInUse
from qnn.store import StageKey, Store, digest_of
from qnn.store.prune import prune

KEY = StageKey("prepare", "c0de", {"shape": [1, 2]}, {"source": "ab" * 32})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as store:
        yield store


def writes(text: str, calls: list[str] | None = None) -> Callable[[Path], None]:
    def produce(folder: Path) -> None:
        if calls is not None:
            calls.append(text)
        (folder / "sub").mkdir()
        (folder / "sub" / "out.txt").write_text(text)

    return produce


def zeros(size: int) -> Callable[[Path], None]:
    def produce(folder: Path) -> None:
        (folder / "out").write_bytes(bytes(size))

    return produce


def test_made_once_then_reused(store: Store) -> None:
    calls: list[str] = []
    first = store.make(KEY, writes("one", calls))
    second = store.make(KEY, writes("two", calls))
    assert (first.reused, second.reused, calls) == (False, True, ["one"])
    assert (second.entry.folder / "sub/out.txt").read_text() == "one"
    assert second.entry.file("sub/out.txt").size == 3


def test_another_store_object_finds_it(store: Store) -> None:
    store.make(KEY, writes("one"))
    with Store(store.root) as other:
        found = other.get(KEY)
        assert found is not None
        assert found.files[0].name == "sub/out.txt"


@pytest.mark.parametrize(
    "change",
    [
        StageKey("simplify", "c0de", {"shape": [1, 2]}, {"source": "ab" * 32}),
        StageKey("prepare", "c0df", {"shape": [1, 2]}, {"source": "ab" * 32}),
        StageKey("prepare", "c0de", {"shape": [2, 1]}, {"source": "ab" * 32}),
        StageKey("prepare", "c0de", {"shape": [1, 2]}, {"source": "ac" * 32}),
        StageKey("prepare", "c0de", {"shape": [1, 2]}, {"sourced": "ab" * 32}),
    ],
)
def test_every_part_of_the_key_counts(change: StageKey) -> None:
    assert change.digest != KEY.digest


@given(st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8) | st.booleans(), max_size=6))
def test_digest_ignores_order_only(values: dict[str, int | str | bool]) -> None:
    turned = dict(reversed(list(values.items())))
    assert digest_of(values) == digest_of(turned)
    assert digest_of({**values, "zz-extra": 1}) != digest_of(values)


def test_failed_maker_leaves_nothing_and_next_one_succeeds(store: Store) -> None:
    def fails(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.make(KEY, fails)
    assert store.get(KEY) is None
    assert list((store.root / "tmp").iterdir()) == []
    assert store.make(KEY, writes("whole")).reused is False


@pytest.mark.parametrize("harm", ["flip", "truncate", "delete", "record"])
def test_damage_is_noticed_and_mended(store: Store, harm: str) -> None:
    entry = store.make(KEY, writes("content")).entry
    target = entry.folder / "sub/out.txt"
    stat = target.stat()
    if harm == "flip":
        target.write_text("c0ntent")
        os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # nothing but the content gives it away
    elif harm == "truncate":
        target.write_text("con")
    elif harm == "delete":
        target.unlink()
    else:
        (entry.folder.parent / "entry.json").write_text('{"files": 3')
    with Store(store.root) as later:
        assert later.get(KEY) is None
        assert later.make(KEY, writes("content")).reused is False
        assert target.read_text() == "content"


def test_disk_full_is_one_error_and_leaves_nothing(store: Store) -> None:
    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder / "out"))

    with pytest.raises(DiskFull, match="no space left"):
        store.make(KEY, full)
    assert store.get(KEY) is None


def test_really_full_disk(small_disk: Path) -> None:
    with Store(small_disk / "store") as store:
        with pytest.raises(DiskFull):
            store.make(KEY, zeros(1 << 20))
        assert list((store.root / "tmp").iterdir()) == []
        assert store.make(KEY, writes("fits")).reused is False


def test_read_only_store(read_only_disk: Path) -> None:
    with pytest.raises(NotWritable, match="store"), Store(read_only_disk / "store"):
        pass


def test_two_threads_make_it_once(store: Store) -> None:
    calls: list[str] = []

    def slow(folder: Path) -> None:
        calls.append("made")
        time.sleep(0.3)
        (folder / "out").write_text("x")

    threads = [threading.Thread(target=store.make, args=(KEY, slow)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == ["made"]


def _make_in_process(root: str, marks: str) -> None:
    def slow(folder: Path) -> None:
        Path(marks, str(os.getpid())).touch()
        time.sleep(0.3)
        (folder / "out").write_text("x")

    with Store(Path(root)) as store:
        store.make(KEY, slow)


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_make_in_process, args=(str(tmp_path / "store"), str(marks))) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(list(marks.iterdir())) == 1


def test_killed_maker_is_swept_away(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from qnn.store import Store, StageKey\n"
        "def slow(folder):\n"
        "    (folder / 'half').write_text('half'); Path(sys.argv[1] + '.ready').touch(); time.sleep(600)\n"
        "with Store(Path(sys.argv[1])) as store: store.make(StageKey('prepare', 'c'), slow)\n"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    worker = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "store")], env=environment)
    while not (tmp_path / "store.ready").exists():
        time.sleep(0.02)
        assert worker.poll() is None
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    with Store(tmp_path / "store") as store:
        assert list((store.root / "tmp").iterdir()) == []
        assert store.make(StageKey("prepare", "c"), writes("whole")).reused is False


def test_prune_keeps_the_most_recently_used_and_refuses_while_in_use(store: Store) -> None:
    keys = [StageKey("compile", str(number)) for number in range(4)]
    for age, key in enumerate(reversed(keys)):  # keys[0] is the oldest
        entry = store.make(key, zeros(1000)).entry
        moment = 1_000_000 - 86_400 * (3 - age)
        os.utime(entry.folder.parent / "entry.json", (moment, moment))
    removed = prune(store, max_bytes=2000, max_age_days=None, now=1_000_000)
    assert {entry.digest for entry in removed} == {keys[3].digest, keys[2].digest}
    removed = prune(store, max_bytes=None, max_age_days=0.5, now=1_000_000)
    assert {entry.digest for entry in removed} == {keys[1].digest}
    assert not (store.root / "objects" / keys[1].digest[:2] / keys[1].digest).exists()
    with Store(store.root), pytest.raises(StoreInUse):
        prune(store, max_bytes=0, max_age_days=None, now=1_000_000)
    shutil.rmtree(store.root)
