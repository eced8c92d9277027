"""Fetch, check and unpack the full QAIRT SDK and the Android NDK into an image. Runs on Python 3.11 alone.

An archive is unpacked only after the licence was accepted and its size and sha256 were found right.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NoReturn

RECEIPT = ".qnn-forge-kit.json"
# Where the builder mounts `--secret id=authorization`: the value of an Authorization header.
SECRET = Path("/run/secrets/authorization")
_ACCEPT = "yes"
_BLOCK = 1 << 20
_SECONDS = 60.0
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_LICENCE = """\
the licence was not accepted.
The target `sdk` installs the QAIRT SDK, which is under Qualcomm's licence, and the Android NDK, which is under
Google's. Read both, and if you accept them, build with --build-arg ACCEPT_QAIRT_LICENSE=yes. Do not publish the
image: Qualcomm's gives no right to hand the SDK on. The target `pip` needs neither: docker build --target pip"""


class Refused(Exception):
    """Nothing more is done; the message says why and what to do."""


@dataclass(frozen=True)
class Kit:
    """One archive: the prefix of its build arguments, where it is, what it must be (bytes), where it goes, and a file
    that every release of the kit holds, relative to its folder."""

    name: str
    url: str
    sha256: str
    size: int
    target: Path
    holds: str


def require_licence(word: str) -> None:
    """Raises Refused for every word but "yes"."""
    if word != _ACCEPT:
        raise Refused(_LICENCE)


def parse_kit(name: str, url: str, sha256: str, size: str, target: str, holds: str) -> Kit:
    """A kit from build arguments. Raises Refused, naming the argument that is missing or wrong."""
    address = urllib.parse.urlsplit(url)
    loopback = address.scheme == "http" and address.hostname in _LOOPBACK
    if not (
        loopback or (address.scheme == "https" and address.hostname) or (address.scheme == "file" and address.path)
    ):
        raise Refused(f"{name}_URL must be an https:// or file:// address of a zip; it is {_shown(url)!r}")
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise Refused(f"{name}_SHA256 must be 64 lower-case hexadecimal digits; it is {sha256!r}")
    if not re.fullmatch(r"[1-9][0-9]{0,14}", size):
        raise Refused(f"{name}_SIZE must be the archive's size in bytes; it is {size!r}")
    return Kit(name, url, sha256, int(size), Path(target), holds)


def install(kit: Kit, authorization: str | None) -> None:
    """Fetch, check, unpack, and leave a receipt. Raises Refused; then the target folder does not exist."""
    kit.target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kit.target.parent) as work:
        archive, unpacked = Path(work) / "archive", Path(work) / "unpacked"
        with archive.open("wb") as stream:
            _download(kit, authorization, stream)
        prefix = unpack(kit.name, archive, unpacked)
        if not (unpacked / kit.holds).is_file():
            raise Refused(f"{kit.name}: the archive holds no {kit.holds}; {kit.name}_URL is of something else")
        receipt = {"kit": kit.name, "sha256": kit.sha256, "size": kit.size, "folder": str(prefix)}
        (unpacked / RECEIPT).write_text(json.dumps(receipt, sort_keys=True) + "\n", encoding="utf-8")
        os.rename(unpacked, kit.target)


def _download(kit: Kit, authorization: str | None, stream: BinaryIO) -> None:
    request = urllib.request.Request(kit.url)  # noqa: S310 - parse_kit let only https, file and loopback http pass
    if authorization is not None:
        # Not sent on to where a redirect leads.
        request.add_unredirected_header("Authorization", authorization)
    digest, size = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - as above
            while block := answer.read(_BLOCK):
                size += len(block)
                if size > kit.size:
                    raise Refused(f"{kit.name}: the archive is larger than {kit.name}_SIZE={kit.size} bytes")
                digest.update(block)
                stream.write(block)
    except urllib.error.URLError as error:
        raise Refused(f"{kit.name}: {_shown(kit.url)} cannot be fetched: {error.reason}") from None
    if size != kit.size:
        raise Refused(
            f"{kit.name}: the archive has {size} bytes, and {kit.name}_SIZE says {kit.size}; it was cut short"
        )
    if digest.hexdigest() != kit.sha256:
        raise Refused(
            f"{kit.name}: the archive's sha256 is {digest.hexdigest()}, and {kit.name}_SHA256 says {kit.sha256}; "
            "nothing was unpacked"
        )


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    address = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((address.scheme, address.netloc.rpartition("@")[2], address.path, "", ""))


def unpack(name: str, archive: Path, target: Path) -> PurePosixPath:
    """Unpack a zip with its permissions and links, without the folders that hold all of it; returns those.

    Raises Refused for what is no zip, and for an entry or link that would lead out of the target.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = opened.infolist()
            paths = [_safe(name, entry.filename) for entry in entries]
            prefix = common_folder([path for path, entry in zip(paths, entries, strict=True) if not entry.is_dir()])
            target.mkdir()
            links = []
            for path, entry in zip(paths, entries, strict=True):
                if path.is_relative_to(prefix):
                    place = target / path.relative_to(prefix)
                    if stat.S_ISLNK(entry.external_attr >> 16):
                        links.append((place, opened.read(entry).decode()))
                    else:
                        _extract(opened, entry, place)
    except (zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError) as error:
        raise Refused(f"{name}: the archive is not a zip that can be read: {error}") from None
    # Links come last, so that no entry is written through one.
    for place, destination in links:
        _link(name, target, place, destination)
    for place, destination in links:  # and once more, for links that lead through other links
        if not place.resolve().is_relative_to(target.resolve()):
            raise _leaves(name, f"the link {place.name} to {destination!r}")
    return prefix


def common_folder(files: Sequence[PurePosixPath]) -> PurePosixPath:
    """The deepest folder that holds all files; "." when there are none or they share none. Pure."""
    if not files:
        return PurePosixPath()
    folders = [file.parent.parts for file in files]
    low, high = min(folders), max(folders)
    shared = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return PurePosixPath(*low[:shared])


def _safe(name: str, entry: str) -> PurePosixPath:
    path = PurePosixPath(entry)
    if path.is_absolute() or ".." in path.parts or "\\" in entry:
        raise _leaves(name, repr(entry))
    return path


def _leaves(name: str, what: str) -> Refused:
    return Refused(f"{name}: the archive holds {what}, which leads out of its folder; nothing was kept")


def _extract(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path) -> None:
    if entry.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(entry) as source, place.open("wb") as target:
        shutil.copyfileobj(source, target, _BLOCK)
    # Readable by everyone, as the image's user is not root; programs stay programs; no set-uid, nothing group-writable.
    place.chmod(0o755 if (entry.external_attr >> 16) & 0o100 else 0o644)


def _link(name: str, target: Path, place: Path, destination: str) -> None:
    end = os.path.normpath(place.parent / destination)
    if os.path.isabs(destination) or not Path(end).is_relative_to(target):
        raise _leaves(name, f"the link {place.name} to {destination!r}")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(destination)


def _main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--accept", required=True, help="the word of ACCEPT_QAIRT_LICENSE")
    parser.add_argument(
        "--kit", nargs=6, action="append", required=True, metavar=("NAME", "URL", "SHA", "SIZE", "TO", "HOLDS")
    )
    options = parser.parse_args(arguments)
    require_licence(options.accept)
    kits = [parse_kit(*words) for words in options.kit]  # all of them, before the first long download
    authorization = SECRET.read_text(encoding="utf-8").strip() if SECRET.is_file() else None
    for kit in kits:
        install(kit, authorization)
        print(f"{kit.name}: {kit.size} bytes, sha256 {kit.sha256}: unpacked into {kit.target}", flush=True)


def main() -> NoReturn:
    """Exit code 1 and one message when something is refused."""
    try:
        _main(sys.argv[1:])
    except Refused as error:
        sys.exit(f"fetch_sdk: {error}")
    sys.exit(0)


if __name__ == "__main__":
    main()
