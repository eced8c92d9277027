"""A Maven repository with a stand-in for the AAR com.qualcomm.qti:qnn-runtime, served by the fake server."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping

from tests.libs.fake_images import BUILD, elf, skel
from tests.sources import fake_server as fake
from tests.sources.fake_server import FakeServer

FOLDER = "/maven2/com/qualcomm/qti/qnn-runtime"
ANDROID = ("libc.so", "libm.so", "libdl.so", "liblog.so")


def libraries(build: str = BUILD, *, alignment: int = 16384) -> dict[str, bytes]:
    """The AAR's libraries, small, by path; of v73 and v75."""

    def library(name: str, *needed: str) -> bytes:
        return elf(soname=name, needed=(*ANDROID, *needed), alignment=alignment, text=build.encode())

    found = {
        "libQnnSystem.so": elf(soname="libQnnSystem.so", needed=ANDROID, alignment=alignment, text=b"no build"),
        "libQnnHtp.so": library("libQnnHtp.so"),
        "libQnnHtpPrepare.so": library("libQnnHtpPrepare.so"),
        "libQnnGpu.so": library("libQnnGpu.so"),
    }
    for number in (73, 75):
        found[f"libQnnHtpV{number}Stub.so"] = library(f"libQnnHtpV{number}Stub.so", "libcdsprpc.so")
        found[f"libQnnHtpV{number}Skel.so"] = skel(number, text=build.encode())
    return {f"jni/arm64-v8a/{name}": data for name, data in found.items()}


def aar(changes: Mapping[str, bytes | None] | None = None, *, build: str = BUILD, alignment: int = 16384) -> bytes:
    """An AAR as the real one is laid out; `changes` replace members, None leaves one out."""
    members: dict[str, bytes | None] = {
        "AndroidManifest.xml": b"<manifest/>",
        "classes.jar": b"PK",
        "LICENSE.pdf": b"%PDF-1.4 terms",
        "NOTICE.txt": b"notices",
        **libraries(build, alignment=alignment),
        **(changes or {}),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in sorted(members.items()):
            if data is not None:
                packed.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


def publish(server: FakeServer, version: str, content: bytes, *checksums: str) -> None:
    """Serve an AAR and the checksum files named (sha1, sha256) beside it."""
    path = f"{FOLDER}/{version}/qnn-runtime-{version}.aar"
    server.routes[path] = fake.file(content)
    for name in checksums:
        server.routes[f"{path}.{name}"] = fake.file(hashlib.new(name, content).hexdigest().encode())


def list_versions(server: FakeServer, *versions: str) -> None:
    """Serve maven-metadata.xml."""
    text = "".join(f"<version>{version}</version>" for version in versions)
    page = f"<metadata><versioning><latest>9.9.9</latest><versions>{text}</versions></versioning></metadata>"
    server.routes[f"{FOLDER}/maven-metadata.xml"] = fake.file(page.encode())
