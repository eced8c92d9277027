"""Archives from a Maven repository: what is in them, how a package is vouched for, and every way it can be wrong."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest

from qnn.bundle.archive import extract_archive
from qnn.chips.table import load_table
from qnn.errors.base import ForgeError
from qnn.errors.libs import (
    ArchNotServed,
    DamagedLibrary,
    MixedVersions,
    NoSuchLibraries,
    NotTheOfficialPackage,
    OtherSetThere,
    PagesTooSmall,
)
from qnn.errors.sources import ServerFault
from qnn.libs.build import Built, Request, build_libraries
from qnn.libs.fetch import Assurance, Depot
from qnn.libs.packages import Arch, Os, Platform, find_package
from qnn.libs.recognise import HEAD_BYTES, is_qairt_library
from qnn.sources.shelf import Shelf
from tests.libs import fake_maven
from tests.libs.fake_images import elf, pe, skel
from tests.sources import fake_server as fake
from tests.sources.fake_server import FakeServer

VERSION = "2.50.0"
PATH = f"{fake_maven.FOLDER}/{VERSION}/qnn-runtime-{VERSION}.aar"
GOOD = fake_maven.aar()
DIGEST = hashlib.sha256(GOOD).hexdigest()


def request(
    *chips: str, sha256: str | None = DIGEST, prepare: bool = False, pages: int = 16384, version: str = VERSION
) -> Request:
    table, platform = load_table(), Platform(Os.ANDROID, Arch.AARCH64)
    package = dataclasses.replace(find_package(platform, version, None, None), sha256=sha256, size=None)
    return Request(platform, tuple(table.lookup(chip) for chip in chips or ("SM8650",)), package, prepare, pages)


def unpacked(built: Built, folder: Path) -> Path:
    folder.mkdir()
    return extract_archive(built.archive, folder)


def test_an_archive(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    fake_maven.publish(server, VERSION, GOOD)
    built = build_libraries(request(), depot, tmp_path / "out")
    assert built.archive.name == "qnn-libs-2.50.0-android-aarch64.tar.gz"
    assert built.sha256 == hashlib.sha256(built.archive.read_bytes()).hexdigest()
    root = unpacked(built, tmp_path / "x")
    assert root.name == "qnn-libs-2.50.0-android-aarch64"
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    assert files == [
        *("lib/libQnnHtp.so", "lib/libQnnHtpV75Skel.so", "lib/libQnnHtpV75Stub.so", "lib/libQnnSystem.so"),
        *("licences/LICENSE.pdf", "licences/NOTICE.txt", "manifest.json"),
    ]
    manifest = json.loads((root / "manifest.json").read_text())
    assert (manifest["qairt"], manifest["build_id"]) == ("2.50.0", "v2.50.0.260828221209")
    assert manifest["package"]["sha256"] == DIGEST
    assert manifest["package"]["checked_against"] == "sha256 known beforehand"
    assert manifest["chips"] == [{"arch": "v75", "name": "SM8650", "soc_id": 57}]
    for entry in manifest["files"]:
        data = (root / entry["path"]).read_bytes()
        assert (entry["size"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    images = {entry["path"]: entry.get("image") for entry in manifest["files"]}
    assert images["lib/libQnnHtp.so"]["pages_16k"] is True
    assert images["lib/libQnnHtpV75Skel.so"]["hexagon"] == "v75"
    assert images["lib/libQnnHtpV75Stub.so"]["needed"][-1] == "libcdsprpc.so"
    assert images["licences/NOTICE.txt"] is None
    assert any(need["library"] == "libcdsprpc.so" for need in manifest["needs_from_outside"])


def test_the_same_again_is_the_same_and_needs_no_network(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    fake_maven.publish(server, VERSION, GOOD)
    first = build_libraries(request("SM8650", "SM8550"), depot, tmp_path / "one")
    server.routes.clear()
    again = build_libraries(request("SM8650", "SM8550"), depot, tmp_path / "one")
    other = build_libraries(request("SM8550", "SM8650", "SM8550"), depot, tmp_path / "two")
    assert (first.fresh, again.fresh, other.fresh) == (True, False, True)
    assert other.archive.read_bytes() == first.archive.read_bytes()
    assert [path.name for path in (tmp_path / "one").iterdir()] == [first.archive.name]


def test_another_set_is_not_overwritten(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    fake_maven.publish(server, VERSION, GOOD)
    before = build_libraries(request("SM8650"), depot, tmp_path / "out").archive.read_bytes()
    with pytest.raises(OtherSetThere):
        build_libraries(request("SM8550"), depot, tmp_path / "out")
    assert [path.read_bytes() for path in (tmp_path / "out").iterdir()] == [before]


def test_publishing_refuses_the_archive_and_all_libraries_in_it(
    server: FakeServer, depot: Depot, tmp_path: Path
) -> None:
    fake_maven.publish(server, VERSION, GOOD)
    built = build_libraries(request(prepare=True), depot, tmp_path / "out")
    head = built.archive.read_bytes()[:HEAD_BYTES]
    assert is_qairt_library(built.archive.name, b"")
    assert is_qairt_library("harmless.tar.gz", head)
    libraries = sorted((unpacked(built, tmp_path / "x") / "lib").iterdir())
    assert len(libraries) == 5
    for path in libraries:
        assert is_qairt_library(path.name, b"")
        assert is_qairt_library("harmless", path.read_bytes()[:HEAD_BYTES])


@pytest.mark.parametrize(
    ("published", "assurance"),
    [
        (("sha1",), Assurance.REPOSITORY_SHA1),
        (("sha1", "sha256"), Assurance.REPOSITORY_SHA256),
    ],
)
def test_an_unknown_package_is_held_against_what_the_repository_says(
    server: FakeServer, depot: Depot, tmp_path: Path, published: tuple[str, ...], assurance: Assurance
) -> None:
    fake_maven.publish(server, VERSION, GOOD, *published)
    built = build_libraries(request(sha256=None), depot, tmp_path / "out")
    assert built.made.assurance is assurance
    manifest = json.loads((unpacked(built, tmp_path / "x") / "manifest.json").read_text())
    assert any("not who made it" in note for note in manifest["notes"])


def test_a_checksum_may_name_its_file(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    fake_maven.publish(server, VERSION, GOOD)
    server.routes[f"{PATH}.sha1"] = fake.file(f"{hashlib.sha1(GOOD).hexdigest().upper()}  x.aar\n".encode())
    assert build_libraries(request(sha256=None), depot, tmp_path).made.assurance is Assurance.REPOSITORY_SHA1


@pytest.mark.parametrize("checksum", [None, b"", b"<html>", b"ab" * 19, b"\xff" * 40])
def test_nothing_vouches_for_the_package(
    server: FakeServer, depot: Depot, tmp_path: Path, checksum: bytes | None
) -> None:
    fake_maven.publish(server, VERSION, GOOD)
    if checksum is not None:
        server.routes[f"{PATH}.sha1"] = fake.file(checksum)
    with pytest.raises(NotTheOfficialPackage, match="nothing vouches") as caught:
        build_libraries(request(sha256=None), depot, tmp_path)
    assert DIGEST in caught.value.remedy


def test_a_checksum_that_is_not_the_packages(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    fake_maven.publish(server, VERSION, GOOD)
    server.routes[f"{PATH}.sha1"] = fake.file(b"0" * 40)
    with pytest.raises(NotTheOfficialPackage, match="is not that package"):
        build_libraries(request(sha256=None), depot, tmp_path)
    assert not depot.holds(request().package)


def test_another_package_than_the_pinned_one(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    fake_maven.publish(server, VERSION, fake_maven.aar({"NOTICE.txt": b"changed"}), "sha1", "sha256")
    with pytest.raises(NotTheOfficialPackage) as caught:
        build_libraries(request(), depot, tmp_path / "out")
    assert caught.value.details[0] == f"expected sha256 {DIGEST}"
    assert list((tmp_path / "out").iterdir()) == []
    fake_maven.publish(server, VERSION, GOOD)  # the wrong one does not stand in the way
    assert build_libraries(request(), depot, tmp_path / "out").fresh


def test_a_download_that_was_damaged_here_is_got_again(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    fake_maven.publish(server, VERSION, GOOD)
    with depot.package(request().package) as kept:
        kept.path.write_bytes(bytes(len(GOOD)))
    assert build_libraries(request(), depot, tmp_path).made.sha256 == DIGEST


def test_a_version_that_is_not_published(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    fake_maven.list_versions(server, "2.9.0", "2.50.0", "2.49.0", "2.50.0")
    with pytest.raises(NoSuchLibraries) as caught:
        build_libraries(request(version="2.77", sha256=None), depot, tmp_path)
    assert caught.value.details[-1] == "it has 2.9.0, 2.49.0, 2.50.0"


def test_a_repository_that_fails(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    server.routes[PATH] = fake.status(503)
    with pytest.raises(ServerFault):
        build_libraries(request(), depot, tmp_path)


def not_deflated() -> bytes:
    """An AAR whose library is packed in a way that Python's zip cannot read."""
    data = bytearray(GOOD)
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 10] = 99
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)


def crowded() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for number in range(10_001):
            packed.writestr(str(number), b"")
    return out.getvalue()


HTP = "jni/arm64-v8a/libQnnHtp.so"
BAD: dict[str, tuple[bytes, type[ForgeError], str]] = {
    "no zip": (b"<html>not here</html>", NotTheOfficialPackage, "cannot be unpacked"),
    "truncated": (GOOD[: len(GOOD) // 2], NotTheOfficialPackage, "cannot be unpacked"),
    "packed otherwise": (not_deflated(), NotTheOfficialPackage, "cannot be unpacked"),
    "crowded": (crowded(), NotTheOfficialPackage, "holds 10001 files"),
    "no licence": (fake_maven.aar({"LICENSE.pdf": None}), NotTheOfficialPackage, "lacks LICENSE.pdf"),
    "no library": (fake_maven.aar({HTP: None}), NotTheOfficialPackage, f"lacks {HTP}"),
    "no skel": (fake_maven.aar({"jni/arm64-v8a/libQnnHtpV75Skel.so": None}), ArchNotServed, "has those for v73"),
    "empty library": (fake_maven.aar({HTP: b""}), DamagedLibrary, f"{HTP}: it is empty"),
    "text": (fake_maven.aar({HTP: b"version https://git-lfs"}), DamagedLibrary, "not an ELF file"),
    "cut library": (fake_maven.aar({HTP: elf(text=b"x" * 99)[:-1]}), DamagedLibrary, "cut off"),
    "other version": (fake_maven.aar(build="v2.51.0.260929181845"), MixedVersions, "not of 2.50.0"),
    "small pages": (fake_maven.aar(alignment=4096), PagesTooSmall, "3 of the libraries"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_package(server: FakeServer, depot: Depot, tmp_path: Path, kind: str) -> None:
    content, error, says = BAD[kind]
    fake_maven.publish(server, VERSION, content)
    with pytest.raises(error, match=says):
        build_libraries(request(sha256=hashlib.sha256(content).hexdigest()), depot, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_small_pages_where_they_are_allowed(server: FakeServer, depot: Depot, tmp_path: Path) -> None:
    content = fake_maven.aar(alignment=4096)
    fake_maven.publish(server, VERSION, content)
    built = build_libraries(request(sha256=hashlib.sha256(content).hexdigest(), pages=4096), depot, tmp_path / "out")
    manifest = json.loads((unpacked(built, tmp_path / "x") / "manifest.json").read_text())
    assert [entry["image"]["pages_16k"] for entry in manifest["files"] if entry["role"] == "backend"] == [False]


def windows_wheel(catalogue: bytes) -> bytes:
    """A wheel for Windows on Arm, for v73 chips."""
    text = b"v2.51.0.260929181845"
    members = {
        "Qualcomm_LICENSE.pdf": b"%PDF",
        "ThirdPartyNotices.txt": b"notices",
        "QnnSystem.dll": pe(name="QnnSystem.dll", text=text),
        "QnnHtp.dll": pe(needed=("KERNEL32.dll", "api-ms-win-core-file-l1-1-0.dll"), text=text),
        "QnnHtpV73Stub.dll": pe(name="QnnHtpV73Stub.dll", needed=("libcdsprpc.dll",), delayed=("wer.dll",), text=text),
        "libQnnHtpV73Skel.so": skel(73, text=text),
        "libqnnhtpv73.cat": catalogue,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, data in members.items():
            packed.writestr(f"onnxruntime_qnn/{name}", data)
    return out.getvalue()


def windows_request(depot: Depot, wheel: bytes, tmp_path: Path) -> Request:
    """A request for what is on the shelf already, under the pinned address."""
    platform = Platform(Os.WINDOWS, Arch.AARCH64)
    package = find_package(platform, "2.51", None, hashlib.sha256(wheel).hexdigest())
    (tmp_path / "wheel").write_bytes(wheel)
    Shelf(depot.downloads).slot(depot.address(package)).keep(tmp_path / "wheel")
    return Request(platform, (load_table().lookup("SC8380XP"),), package, False, 16384)


def test_a_catalogue_that_signs_its_skel(depot: Depot, tmp_path: Path) -> None:
    digest = hashlib.sha256(skel(73, text=b"v2.51.0.260929181845")).digest()
    wanted = windows_request(depot, windows_wheel(b"signed: " + digest + b"."), tmp_path)
    built = build_libraries(wanted, depot, tmp_path / "out")
    assert built.archive.name == "qnn-libs-2.51.0-windows-aarch64.tar.gz"
    assert [file.wanted.target for file in built.made.files if file.wanted.role == "catalogue"] == [
        "lib/libqnnhtpv73.cat"
    ]
    assert dict(built.made.outside)["libcdsprpc.dll"] == "the NPU's driver"


def test_a_catalogue_of_another_skel(depot: Depot, tmp_path: Path) -> None:
    wanted = windows_request(depot, windows_wheel(b"signed: " + bytes(32)), tmp_path)
    with pytest.raises(MixedVersions, match=r"libqnnhtpv73\.cat is not the signature of lib/libQnnHtpV73Skel\.so"):
        build_libraries(wanted, depot, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
