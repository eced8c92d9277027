"""Kill publishes with SIGKILL at random moments: nothing half-done is visible, and a second try sends nothing twice.

Run by hand or by a workflow: ``python -m tests.chaos.kill_publishes [COUNT] [SEED]``; prints one line a publish and a
summary, exit code 1 when any went wrong. Publishes go in turn to a folder, to GitHub (the real `gh`, a fake server)
and to the Hub (the real huggingface_hub, a fake server). A short run of the same code is part of the test command.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.publish import fake_hub_uploads, fake_releases
from tests.publish.conftest import Shop, build_shop
from tests.publish.fake_releases import REPOSITORY

DOCUMENTS = {"README.md", "SHA256SUMS", "provenance.intoto.json", "sbom.cdx.json"}
MODELS = ("toy", "toy-b")


@dataclass(frozen=True)
class Stage:
    """A target with nothing in it yet: the options that publish there, what is visible (path → sha256 or content),
    and how often each file's content arrived whole.
    """

    options: tuple[str, ...]
    environment: Mapping[str, str]
    visible: Callable[[], dict[str, bytes]]
    arrived: Callable[[], Counter[str]]


@contextmanager
def folder(scratch: Path) -> Iterator[Stage]:
    """A folder; what arrived is counted by inode, as a file that is copied again is another one."""
    public = scratch / "public"
    seen: dict[str, set[int]] = {}

    def files() -> dict[str, bytes]:
        return {
            path.relative_to(public).as_posix(): path.read_bytes()
            for path in public.rglob("*")
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(public).parts)
        }

    def arrived() -> Counter[str]:
        for path in public.rglob("*.tar.gz"):
            seen.setdefault(path.name, set()).add(path.stat().st_ino)
        return Counter({name: len(inodes) for name, inodes in seen.items()})

    yield Stage(("--to", "folder", "--folder", str(public)), {}, files, arrived)


@contextmanager
def github(scratch: Path) -> Iterator[Stage]:
    """A fake GitHub; what is visible are the files of published releases."""
    with fake_releases.serving(scratch) as fake:

        def files() -> dict[str, bytes]:
            with fake.lock:
                assert not fake.wrongs, fake.wrongs
                return {
                    f"{tag}/{name}": content for tag, kept in fake.published().items() for name, content in kept.items()
                }

        def arrived() -> Counter[str]:
            return Counter({name: n for (name, _), n in fake.sent.items() if name.endswith(".tar.gz")})

        yield Stage(("--to", "github", "--repo", REPOSITORY), fake_releases.environment(scratch), files, arrived)


@contextmanager
def hub(scratch: Path) -> Iterator[Stage]:
    """A fake Hub; what is visible is main."""
    with fake_hub_uploads.serving() as fake:
        for model in MODELS:
            fake.make(f"acme/{model}")

        def files() -> dict[str, bytes]:
            with fake.lock:
                assert not fake.wrongs, fake.wrongs
                mains = {name: one.main() for name, one in fake.repositories.items()}
            return {
                f"{name}/{path}": content
                for name, main in mains.items()
                for path, content in main.items()
                if "/r" in path
            }

        yield Stage(
            ("--to", "huggingface", "--repo", "acme/{model}"),
            fake_hub_uploads.environment(fake, str(scratch / "hf")),
            files,
            lambda: Counter(fake.sent),
        )


TARGETS = {"folder": folder, "github": github, "hub": hub}


def command(stage: Stage, shop: Shop, scratch: Path) -> subprocess.Popen[bytes]:
    """A publish, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "qnn.cli", "publish", str(shop.dist), *stage.options, "--index", str(scratch / "index")],
        env=shop.environment(stage.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def half_done(files: Mapping[str, bytes], shop: Shop) -> list[str]:
    """What is wrong with what everybody sees: a release is whole, with its own bytes, or not there at all."""
    wrong = []
    releases: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        place, _, name = path.rpartition("/")
        releases.setdefault(place, {})[name] = content
    built = {path.name: path.read_bytes() for path in shop.dist.glob("*.tar.gz")}
    for place, found in sorted(releases.items()):
        bundles = {name: content for name, content in found.items() if name.endswith(".tar.gz")}
        if len(bundles) != 2 or not found.keys() >= DOCUMENTS:
            wrong.append(f"{place} holds only {', '.join(sorted(found))}")
        wrong += [f"{place}/{name} has other bytes" for name, content in bundles.items() if built[name] != content]
    return wrong


def index_faults(index: Path, files: Mapping[str, bytes]) -> list[str]:
    """An index names nothing that is not visible."""
    text = "".join(path.read_text() for path in sorted(index.rglob("*.json"))) if index.exists() else ""
    names = {path.rpartition("/")[2] for path in files}
    built = {word for word in text.split('"') if word.endswith(".tar.gz") and "/" not in word}
    return [f"the index names {name}, which nobody can see" for name in sorted(built - names)]


def run(count: int, seed: int, shop: Shop | None = None) -> int:
    """Kill `count` publishes; returns how many left something half-done, failed the second time or sent twice."""
    chance = random.Random(seed)
    faulty = killed = 0
    with tempfile.TemporaryDirectory(prefix="qnn-forge-chaos-") as scratch:
        shop = shop or build_shop(Path(scratch) / "shop")
        whole: dict[str, float] = {}
        while killed < count:
            name = list(TARGETS)[killed % len(TARGETS)]
            place = Path(scratch) / "try"
            place.mkdir()
            with TARGETS[name](place) as stage:
                if name not in whole:
                    began = time.monotonic()
                    assert finish(stage, shop, place) == []
                    whole[name] = time.monotonic() - began
                elif kill_once(stage, shop, place, moment := chance.uniform(0.0, whole[name])):
                    faults = after_kill(stage, shop, place)
                    faulty += bool(faults)
                    killed += 1
                    said = "; ".join(faults) if faults else "nothing half-done, completed, nothing sent twice"
                    print(f"{killed:3d} {name:6s} killed at {moment:5.2f} s: {said}", flush=True)
            shutil.rmtree(place)
    print(f"{count} publishes killed, {count - faulty} completed by a second try that sent nothing twice, {faulty} not")
    return faulty


def kill_once(stage: Stage, shop: Shop, scratch: Path, seconds: float) -> bool:
    """Kill a publish after `seconds`; False when it had ended by itself before."""
    process = command(stage, shop, scratch)
    time.sleep(seconds)
    if process.poll() is not None:
        process.communicate()
        return False
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return True


def after_kill(stage: Stage, shop: Shop, scratch: Path) -> list[str]:
    """What a killed publish left, and what the second try makes of it."""
    files = stage.visible()
    wrong = half_done(files, shop) + index_faults(scratch / "index", files)
    stage.arrived()
    return wrong + finish(stage, shop, scratch)


def finish(stage: Stage, shop: Shop, scratch: Path) -> list[str]:
    """Publish to the end; what is wrong then."""
    process = command(stage, shop, scratch)
    _, errors = process.communicate()
    if process.returncode:
        return [f"the second try failed: {errors.decode()[-500:]}"]
    files = stage.visible()
    wrong = half_done(files, shop) + index_faults(scratch / "index", files)
    bundles = [path for path in files if path.endswith(".tar.gz")]
    if len(bundles) != 4:
        wrong.append(f"{len(bundles)} of 4 bundles are visible")
    wrong += [f"{name} arrived {times} times" for name, times in sorted(stage.arrived().items()) if times > 1]
    if len(list((scratch / "index").rglob("1.0.json"))) != len(MODELS):
        wrong.append("the index is not complete")
    return wrong


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    sys.exit(bool(run(arguments[0] if arguments else 50, arguments[1] if len(arguments) > 1 else 0)))
