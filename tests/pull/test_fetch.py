"""Fetching: once, from any address, going on where it stopped, into a folder that is never half full."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from qnn.errors.base import ForgeError
from qnn.sources.protocol import Progress
from tests.index.examples import manifest
from tests.pull.conftest import FILES, Puller, Shop
from tests.sources import fake_server as fake
from tests.sources.fake_server import FakeServer


def asked(server: FakeServer, name: str) -> list[str | None]:
    """The Range header of each request for a file."""
    return [seen.headers.get("range") for seen in server.seen if seen.path.endswith(name)]


def test_the_bundle_arrives_and_is_what_was_published(shop: Shop, server: FakeServer, puller: Puller) -> None:
    file = shop.publish()
    shop.serve(server)
    taken = puller.pull(server.url(""))
    assert taken.folder == puller.out / file.name.removesuffix(".tar.gz")
    assert sorted(path.name for path in taken.folder.iterdir()) == ["manifest.json", "net.bin", "net_ctx.onnx"]
    assert puller.left() == [taken.folder.name]
    assert taken.note == "the index names no attestation; the sha256 was checked"


def test_a_second_pull_downloads_nothing_again(shop: Shop, server: FakeServer, puller: Puller) -> None:
    file = shop.publish()
    shop.serve(server)
    puller.pull(server.url(""))
    sent, first = server.sent, len(server.seen)
    again = puller.pull(server.url(""))
    other = replace(puller, out=puller.out.with_name("other")).pull(server.url(""))
    assert (again.folder.name, other.folder.name) == (file.name.removesuffix(".tar.gz"),) * 2
    assert server.sent == sent, "documents are asked for again, and answered with 304"
    assert len(server.seen) > first


def test_a_damaged_cache_is_mended(shop: Shop, server: FakeServer, puller: Puller) -> None:
    file = shop.publish()
    shop.serve(server)
    puller.pull(server.url(""))
    for body in puller.cache.rglob("body"):
        data = body.read_bytes()
        body.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    other = replace(puller, out=puller.out.with_name("other"))
    assert other.pull(server.url("")).folder.is_dir()
    assert asked(server, file.name) == [None, None]


def test_a_broken_download_goes_on_where_it_stopped(shop: Shop, server: FakeServer, puller: Puller) -> None:
    file = shop.publish()
    shop.serve(server)
    content = (shop.index / FILES / file.name).read_bytes()
    path = f"/{FILES}/{file.name}"
    whole = fake.file(content)
    server.routes[path] = fake.in_turn(fake.cut(content, 40_000), fake.cut(content, 30_000), whole)
    before = server.sent
    puller.pull(server.url(""))
    assert asked(server, file.name) == [None, "bytes=40000-", "bytes=70000-"]
    documents = sum((shop.index / name).stat().st_size for name in ("v1/models/toy.json", "v1/models/toy/1.0.json"))
    assert server.sent - before == len(content) + documents


def test_the_next_run_goes_on_too_even_at_another_address(shop: Shop, server: FakeServer, puller: Puller) -> None:
    file = shop.publish(urls=("one.tar.gz", "two.tar.gz"))
    shop.serve(server)
    content = (shop.index / FILES / file.name).read_bytes()
    server.routes["/one.tar.gz"] = fake.in_turn(fake.cut(content, 60_000), fake.status(404))
    with pytest.raises(ForgeError) as caught:
        puller.pull(server.url(""))
    assert caught.value.id == "QF720"
    server.routes["/two.tar.gz"] = fake.file(content)
    assert puller.pull(server.url("")).folder.is_dir()
    assert asked(server, "two.tar.gz")[-1] == "bytes=60000-"


def test_every_address_is_tried_and_all_are_named_when_none_works(
    shop: Shop, server: FakeServer, puller: Puller
) -> None:
    file = shop.publish(urls=("gone.tar.gz", "wrong.tar.gz", "good.tar.gz"))
    shop.serve(server)
    content = (shop.index / FILES / file.name).read_bytes()
    server.routes["/wrong.tar.gz"] = fake.file(content[:-1] + b"x")
    with pytest.raises(ForgeError) as caught:
        puller.pull(server.url(""))
    assert caught.value.id == "QF720"
    assert [line.split(":")[0] for line in caught.value.details].count("also tried") == 2
    server.routes["/good.tar.gz"] = fake.file(content)
    assert puller.pull(server.url("")).folder.is_dir()


def test_two_pulls_of_one_file_at_once_download_it_once(shop: Shop, server: FakeServer, puller: Puller) -> None:
    file = shop.publish()
    shop.serve(server)
    path = f"/{FILES}/{file.name}"
    server.routes[path] = fake.slow(server.routes[path], 0.5)
    command = [sys.executable, "-m", "tests.pull.pull_once", server.url("")]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    started = [subprocess.Popen([*command, str(out), str(puller.cache)], env=env) for out in (puller.out, puller.out)]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    assert asked(server, file.name) == [None]
    assert puller.left() == [file.name.removesuffix(".tar.gz")]


def test_several_models_come_in_parallel(shop: Shop, server: FakeServer, puller: Puller) -> None:
    """Both downloads are under way at once: each waits until the other was asked for."""
    import threading  # noqa: PLC0415

    from qnn.pull.bases import open_base  # noqa: PLC0415
    from qnn.pull.run import Trust, take_all  # noqa: PLC0415

    files = [shop.publish(), shop.publish("SM8750", seed=1)]
    shop.serve(server)
    together = threading.Barrier(2, timeout=30)

    def meeting(route: fake.Route) -> fake.Route:
        def waits(handler: fake.Handler) -> None:
            together.wait()
            route(handler)

        return waits

    for file in files:
        server.routes[f"/{FILES}/{file.name}"] = meeting(server.routes[f"/{FILES}/{file.name}"])
    base = server.url("")
    founds = [puller.find(base), puller.find(base, soc="SM8750")]
    taken = take_all(founds, puller.out, open_base(base), puller.desk, Trust("a/b"), 2)
    assert [one.folder.name for one in taken] == [file.name.removesuffix(".tar.gz") for file in files]


def test_a_folder_may_have_files_beside_it_and_elsewhere(shop: Shop, server: FakeServer, puller: Puller) -> None:
    whole, archive = shop.archive(manifest())
    moved = shop.root / "dist" / archive.name
    moved.parent.mkdir()
    archive.rename(moved)
    for number, url in enumerate((f"../../dist/{moved.name}", str(moved), moved.as_uri())):
        other = replace(shop, root=shop.root / str(number))
        other.enter(whole, moved, urls=(url,))
        pull = replace(puller, out=puller.out / str(number))
        assert pull.pull(str(other.index)).folder.is_dir()
        assert pull.pull(other.index.as_uri()).folder.is_dir()
    assert server.seen == []
    assert not puller.cache.exists() or not list(puller.cache.rglob("body"))


def test_what_is_in_the_output_folder_is_never_overwritten(shop: Shop, puller: Puller) -> None:
    shop.publish()
    folder = puller.pull(str(shop.index)).folder
    (folder / "net.bin").write_bytes(b"mine")
    with pytest.raises(ForgeError, match="is there already and differs") as caught:
        puller.pull(str(shop.index))
    assert caught.value.id == "QF728"
    assert (folder / "net.bin").read_bytes() == b"mine"
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(ForgeError, match="is another bundle"):
        puller.pull(str(shop.index))
    folder.rename(folder.with_name("kept"))
    folder.symlink_to("kept")
    with pytest.raises(ForgeError, match="is another bundle"):
        puller.pull(str(shop.index))
    assert puller.left() == sorted(["kept", folder.name])


def test_leavings_of_a_killed_pull_are_removed(shop: Shop, puller: Puller) -> None:
    shop.publish()
    left = puller.out / ".qnn-forge-pull-abc" / "toy"
    left.mkdir(parents=True)
    (left / "net.bin").write_bytes(b"half")
    folder = puller.pull(str(shop.index)).folder
    assert puller.left() == [folder.name]


def test_progress_counts_the_bytes(shop: Shop, server: FakeServer, puller: Puller) -> None:
    file = shop.publish()
    shop.serve(server)
    seen: list[tuple[str, int, int | None]] = []

    class Counts(Progress):
        def advance(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
            seen.append((name, done_bytes, total_bytes))

    from qnn.pull.bases import Desk, open_base  # noqa: PLC0415
    from qnn.pull.fetch import obtain  # noqa: PLC0415

    desk = Desk(puller.desk.shelf, puller.policy, Counts())
    found = puller.find(server.url(""))
    assert found.choice.file is not None
    obtain(found.choice.file, open_base(server.url("")), desk)
    assert seen[-1] == (file.name, file.size, file.size)


def test_the_cache_can_be_anywhere_and_the_umask_is_kept(shop: Shop, puller: Puller) -> None:
    shop.publish()
    folder = puller.pull(str(shop.index)).folder
    mask = os.umask(0)
    os.umask(mask)
    assert Path(folder).stat().st_mode & 0o777 == 0o777 & ~mask


def test_a_download_whose_record_is_missing_is_kept(shop: Shop, server: FakeServer, puller: Puller) -> None:
    """As after a kill at the very end: all bytes are there, and nothing says so."""
    file = shop.publish()
    shop.serve(server)
    content = (shop.index / FILES / file.name).read_bytes()
    slot = puller.desk.shelf.slot(f"sha256:{file.sha256}")
    for number, name in enumerate(("partial", "body")):
        slot.folder.mkdir(parents=True, exist_ok=True)
        (slot.folder / name).write_bytes(content)
        assert replace(puller, out=puller.out / str(number)).pull(server.url("")).folder.is_dir()
        assert asked(server, file.name) == []
        slot.drop()
    slot.folder.mkdir(parents=True)
    (slot.folder / "partial").write_bytes(content[:-1] + b"x")
    assert slot.rescue(file.sha256, file.size) is None
    assert replace(puller, out=puller.out / "third").pull(server.url("")).folder.is_dir()
    assert asked(server, file.name) == [None]
