"""Bad input: one clear error each, nothing left behind, the cache intact."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from qnn.errors.base import ForgeError
from qnn.index.update import PublishedFile, yank
from qnn.sources.protocol import Policy
from tests.index.examples import manifest
from tests.pull.conftest import FILES, Puller, Shop
from tests.sources import fake_server as fake
from tests.sources.fake_server import FakeServer

VERSION = "/v1/models/toy/1.0.json"


class Stand:
    """A served index with one archive, and another archive that is in the cache already."""

    def __init__(self, shop: Shop, server: FakeServer, puller: Puller) -> None:
        self.shop, self.server, self.puller = shop, server, puller
        self.kept = shop.publish("SM8750", seed=1)
        self.file = shop.publish(size=200_000)
        shop.serve(server)
        self.base = server.url("")
        warm = replace(puller, out=puller.out.with_name("warm"))
        warm.pull(self.base, soc="SM8750")
        server.seen.clear()

    @property
    def path(self) -> str:
        return f"/{FILES}/{self.file.name}"

    @property
    def content(self) -> bytes:
        return (self.shop.index / FILES / self.file.name).read_bytes()

    def refuses(self, code: str, complaint: str) -> ForgeError:
        """The pull fails with that error and nothing of it is left; what was in the cache is still good."""
        with pytest.raises(ForgeError) as caught:
            self.puller.pull(self.base)
        error = caught.value
        assert error.id == code, error.lines()
        assert complaint in " ".join(error.lines())
        assert "model.yaml" not in " ".join(error.lines())
        assert self.puller.left() == []
        return error

    def recovers(self) -> None:
        """Once the server is as it should be, the pull works, and what was cached is not asked for again."""
        self.shop.serve(self.server)
        assert self.puller.pull(self.base).folder.name == self.file.name.removesuffix(".tar.gz")
        self.server.seen.clear()
        self.puller.pull(self.base, soc="SM8750")
        assert [seen.path for seen in self.server.seen if FILES in seen.path] == []


@pytest.fixture
def stand(shop: Shop, server: FakeServer, puller: Puller) -> Stand:
    return Stand(shop, server, puller)


def flipped(content: bytes) -> bytes:
    return content[:5000] + bytes([content[5000] ^ 1]) + content[5001:]


def _cut_at_once(data: bytes) -> fake.Route:
    """Announces everything and sends a little, always from the start."""

    def route(handler: fake.Handler) -> None:
        handler.head(200, Content_Length=len(data))
        handler.body(data[:1000])
        handler.hang_up()

    return route


FAULTS: dict[str, tuple[Callable[[bytes], fake.Route], str, str]] = {
    "truncated": (lambda data: fake.file(data[:-1]), "QF726", "announces"),
    "too long": (lambda data: fake.file(data + b"x"), "QF726", "announces"),
    "tampered": (lambda data: fake.file(flipped(data)), "QF726", "actual sha256"),
    "longer than it says": (lambda data: fake.chunked(data + b"x" * 5000), "QF726", "more bytes came"),
    "shorter than it says": (lambda data: fake.chunked(data[:-5000]), "QF726", "actual sha256"),
    "closes early": (lambda data: fake.cut(data[:100], 50, None), "QF726", "announces 100 bytes"),
    "closes early each time": (_cut_at_once, "QF723", "received 1000 bytes"),
    "hangs up": (lambda _: fake.hangs_up, "QF723", "the connection to"),
    "404": (lambda _: fake.status(404), "QF720", "answers 404"),
    "403": (lambda _: fake.status(403), "QF720", "answers 403"),
    "429": (lambda _: fake.status(429, Retry_After=0), "QF721", "too many requests"),
    "429, come back in an hour": (lambda _: fake.status(429, Retry_After=3600), "QF721", "asks to wait 3600 s"),
    "500": (lambda _: fake.status(500), "QF722", "answers 500"),
    "teapot": (lambda _: fake.status(418), "QF722", "answers 418"),
    "redirects to http": (lambda _: fake.redirect("http://files.example/x"), "QF724", "which is not https"),
    "redirects to a file": (lambda _: fake.redirect("file:///etc/passwd"), "QF724", "which is not https"),
    "redirects to nothing": (lambda _: fake.redirect("x.tar.gz"), "QF720", "answers 404"),
    "redirects in a circle": (
        lambda _: fake.redirect("toy-1.0-s16-w8a16-SM8650-qairt2.51.0.tar.gz"),
        "QF724",
        "go in a circle",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_archive_that_does_not_come_as_it_should(stand: Stand, fault: str) -> None:
    route, code, complaint = FAULTS[fault]
    stand.server.routes[stand.path] = route(stand.content)
    error = stand.refuses(code, complaint)
    assert stand.file.name in error.message
    stand.recovers()


@pytest.mark.parametrize(
    ("route", "code", "complaint"),
    [
        (fake.status(404), "QF720", "answers 404"),
        (fake.status(429, Retry_After=0), "QF721", "too many requests"),
        (fake.status(500), "QF722", "answers 500"),
        (fake.hangs_up, "QF723", "the connection to"),
        (fake.redirect("http://files.example/x"), "QF724", "which is not https"),
        (fake.file(b"<html>no</html>"), "QF710", "is not JSON"),
        (fake.file(b"\xff\xfe"), "QF710", "is not text"),
        (fake.file(b'{"schema": 1}'), "QF710", "required field missing"),
        (fake.file(b'{"schema": 9, "what": "ever"}'), "QF711", "schema version 9"),
        (fake.chunked(b" " * (33 << 20)), "QF726", "more bytes came"),
    ],
)
def test_an_index_document_that_does_not_come_as_it_should(
    stand: Stand, route: fake.Route, code: str, complaint: str
) -> None:
    stand.server.routes[VERSION] = route
    stand.refuses(code, complaint)
    stand.recovers()


def test_a_server_fault_that_passes_is_waited_for(stand: Stand) -> None:
    good = stand.server.routes[stand.path]
    stand.server.routes[stand.path] = fake.in_turn(fake.status(503), fake.status(429, Retry_After=0), good)
    assert stand.puller.pull(stand.base).folder.is_dir()
    assert len([seen for seen in stand.server.seen if seen.path == stand.path]) == 3


def test_over_tls_no_redirect_leads_to_plain_http(
    shop: Shop, tls_server: FakeServer, trusting: Policy, puller: Puller
) -> None:
    file = shop.publish()
    shop.serve(tls_server)
    tls_server.routes[f"/{FILES}/{file.name}"] = fake.redirect(f"http://127.0.0.1:{tls_server.port}/x")
    with pytest.raises(ForgeError) as caught:
        replace(puller, policy=trusting).pull(tls_server.url(""))
    assert (caught.value.id, puller.left()) == ("QF724", [])


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/x", "ftp://files.example/x", "file:///etc/passwd", "/etc/passwd"]
)
def test_an_index_on_the_web_names_nothing_but_https(
    shop: Shop, tls_server: FakeServer, trusting: Policy, puller: Puller, address: str
) -> None:
    shop.publish(urls=(address,))
    shop.serve(tls_server)
    with pytest.raises(ForgeError) as caught:
        replace(puller, policy=trusting).pull(tls_server.url(""))
    assert (caught.value.id, puller.left()) == ("QF724", [])


def test_an_entry_of_another_size(stand: Stand) -> None:
    stand.shop.edit(f'"size":{stand.file.size}', f'"size":{stand.file.size - 1}')
    stand.shop.serve(stand.server)
    stand.refuses("QF726", "the index says")


def test_a_yanked_file_is_not_taken(stand: Stand) -> None:
    yank(stand.shop.index, "toy", "1.0", ["SM8650"], "wrong numbers")
    stand.shop.serve(stand.server)
    stand.refuses("QF733", "is yanked: wrong numbers")
    taken = stand.puller.pull(stand.base, revision=1, yanked_too=True)
    assert taken.found.choice.verdict == "use with a warning"
    assert "wrong numbers" in " ".join(taken.found.choice.reasons)


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ('"build_id":"v2.51.0.1"', '"build_id":"v2.51.0.2"', "build_id"),
        ('"cosine":0.99999', '"cosine":0.999999', "graphs"),
        ('"qairt":"2.51.0"', '"qairt":"2.48.0"', "qairt"),
        ('"precision":"w8a16"', '"precision":"w8a8"', "precision"),
        ('"shape":[1,3]', '"shape":[1,4]', "inputs and outputs"),
        ('"vtcm_mb":8', '"vtcm_mb":2', "vtcm_mb"),
    ],
)
def test_an_entry_that_is_not_true_of_its_file(stand: Stand, old: str, new: str, fact: str) -> None:
    stand.shop.edit(old, new)
    stand.shop.serve(stand.server)
    stand.refuses("QF727", f"{fact}: the index says")


def test_an_entry_that_points_to_the_file_of_another_chip(stand: Stand) -> None:
    """Size and sha256 of a genuine file of another chip: only its manifest tells."""
    ours, other = stand.file, stand.kept
    for mine, theirs in ((ours.sha256, other.sha256), (f'"size":{ours.size}', f'"size":{other.size}')):
        stand.shop.edit(mine, theirs)
    stand.shop.edit(f"{FILES}/{ours.name}", f"{FILES}/{other.name}")
    stand.shop.serve(stand.server)
    stand.refuses("QF727", "soc_id: the index says 57, the file 69")


def test_a_document_of_another_version(stand: Stand) -> None:
    stand.shop.edit('"version":"1.0"', '"version":"1.1"')
    stand.shop.serve(stand.server)
    stand.refuses("QF710", "speaks of toy 1.1")


def tar_of(members: dict[str, bytes], link: tuple[str, str] | None = None) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        if link is not None:
            info = tarfile.TarInfo(link[0])
            info.type, info.linkname = tarfile.SYMTYPE, link[1]
            tar.addfile(info)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (tar_of({"toy/../../evil": b"x"}), "QF703"),
        (tar_of({"/evil/x": b"x"}), "QF703"),
        (tar_of({"toy/a": b"x"}, ("toy/link", "/etc")), "QF703"),
        (tar_of({"toy/a": b"x", "other/b": b"x"}), "QF703"),
        (tar_of({"toy/a": b"x"})[:-20], "QF703"),
        (b"not a tar", "QF703"),
        (tar_of({"toy/a": b"x"}), "QF701"),
        (tar_of({"toy/manifest.json": b"{}"}), "QF701"),
    ],
)
def test_an_archive_that_was_published_like_that(
    shop: Shop, server: FakeServer, puller: Puller, data: bytes, code: str
) -> None:
    whole, archive = shop.archive(manifest())
    archive.write_bytes(data)
    shop.enter(whole, archive)
    shop.serve(server)
    with pytest.raises(ForgeError) as caught:
        puller.pull(server.url(""))
    assert (caught.value.id, puller.left()) == (code, [])
    assert not list(puller.out.parent.rglob("evil"))


def repacked(shop: Shop, change: Callable[[Path], None]) -> PublishedFile:
    """A published archive whose content was changed after its manifest was written."""
    from qnn.bundle.archive import write_archive  # noqa: PLC0415

    whole, archive = shop.archive(manifest())
    folder = shop.root / f"bundle-{whole.name}-0" / whole.name
    change(folder)
    write_archive(folder, whole.name, archive)
    return shop.enter(whole, archive)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "net.bin").write_bytes(b"other"),
        lambda folder: (folder / "more.so").write_bytes(b"more"),
        lambda folder: (folder / "net.bin").unlink(),
    ],
)
def test_files_that_are_not_as_the_manifest_says(shop: Shop, puller: Puller, change: Callable[[Path], None]) -> None:
    repacked(shop, change)
    with pytest.raises(ForgeError) as caught:
        puller.pull(str(shop.index))
    assert (caught.value.id, puller.left()) == ("QF702", [])


def test_a_folder_inside_that_has_another_name(shop: Shop, puller: Puller) -> None:
    whole, archive = shop.archive(manifest())
    from qnn.bundle.archive import write_archive  # noqa: PLC0415

    write_archive(shop.root / f"bundle-{whole.name}-0" / whole.name, ".ssh", archive)
    shop.enter(whole, archive)
    with pytest.raises(ForgeError, match="which its manifest calls") as caught:
        puller.pull(str(shop.index))
    assert (caught.value.id, puller.left()) == ("QF703", [])


def test_a_full_disk_where_the_bundle_goes(stand: Stand, small_disk: Path) -> None:
    big = stand.shop.publish("SM8550", size=400_000)
    stand.shop.serve(stand.server)
    puller = replace(stand.puller, out=small_disk / "out")
    with pytest.raises(OSError, match="No space left"):
        puller.pull(stand.base, soc="SM8550")
    assert list(small_disk.iterdir()) == []
    stand.server.seen.clear()
    replace(puller, out=stand.puller.out).pull(stand.base, soc="SM8550")
    assert not [seen for seen in stand.server.seen if big.name in seen.path], "the archive was whole in the cache"


def test_a_full_disk_where_the_cache_is(stand: Stand, small_disk: Path) -> None:
    stand.shop.publish("SM8550", size=400_000)
    stand.shop.serve(stand.server)
    puller = replace(stand.puller, cache=small_disk / "cache")
    with pytest.raises(OSError, match="No space left"):
        puller.pull(stand.base, soc="SM8550")
    assert puller.left() == []


def test_a_local_index_is_held_to_the_same(shop: Shop, puller: Puller) -> None:
    file = shop.publish()
    archive = shop.index / FILES / file.name
    data = archive.read_bytes()
    for content, code in ((flipped(data), "QF726"), (data[:-1], "QF726"), (None, "QF720")):
        archive.unlink()
        if content is not None:
            archive.write_bytes(content)
        with pytest.raises(ForgeError) as caught:
            puller.pull(str(shop.index))
        assert (caught.value.id, puller.left()) == (code, [])
        archive.write_bytes(b"")
    archive.write_bytes(data)
    assert hashlib.sha256(data).hexdigest() == file.sha256
    assert puller.pull(str(shop.index)).folder.is_dir()
