"""Stand-ins for the archives of the QAIRT SDK and the Android NDK: the same shape, a few bytes of content.

Run as ``python tests/docker/fake_sdk.py FOLDER`` it writes both zips into FOLDER and prints one build argument a line,
ready for ``--build-arg``; the addresses are file:// addresses below the folder given by ``--seen-as``.
"""

from __future__ import annotations

import argparse
import hashlib
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GENERATOR = "bin/x86_64-linux-clang/qnn-context-binary-generator"
_TIME = (2026, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Script:
    """A program's text."""

    text: str


@dataclass(frozen=True)
class Link:
    """A symbolic link to a relative path."""

    to: str


Entry = str | Script | Link


@dataclass(frozen=True)
class Archive:
    """A zip on disk, its sha256 and its size in bytes."""

    path: Path
    sha256: str
    size: int


SDK: Mapping[str, Entry] = {
    f"qairt/9.9.9/{GENERATOR}": Script("#!/bin/sh\necho stand-in of qnn-context-binary-generator\n"),
    "qairt/9.9.9/LICENSE.pdf": "the licence's text\n",
    "qairt/9.9.9/lib/libQnnHtp.so.1": "no library\n",
    "qairt/9.9.9/lib/libQnnHtp.so": Link("libQnnHtp.so.1"),
}
NDK: Mapping[str, Entry] = {
    "android-ndk-r99/source.properties": "Pkg.Desc = Android NDK\nPkg.Revision = 99.0.0\n",
    "android-ndk-r99/toolchains/llvm/prebuilt/linux-x86_64/bin/clang-99": Script("#!/bin/sh\necho stand-in of clang\n"),
    "android-ndk-r99/toolchains/llvm/prebuilt/linux-x86_64/bin/clang": Link("clang-99"),
}


def write_zip(path: Path, entries: Mapping[str, Entry]) -> Archive:
    """A zip with the permissions and links of a Unix zip; always the same bytes for the same entries."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, entry in entries.items():
            info = zipfile.ZipInfo(name, _TIME)
            mode, content = _mode_and_content(entry)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return described(path)


def described(path: Path) -> Archive:
    """Any file as an archive."""
    content = path.read_bytes()
    return Archive(path, hashlib.sha256(content).hexdigest(), len(content))


def _mode_and_content(entry: Entry) -> tuple[int, str]:
    match entry:
        case Script(text):
            return stat.S_IFREG | 0o755, text
        case Link(to):
            return stat.S_IFLNK | 0o777, to
        case _:
            return stat.S_IFREG | 0o644, entry


def main() -> None:
    """Write both archives and print the build arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seen-as", default=None, help="where the builder sees the folder")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    seen = options.seen_as or str(options.folder.absolute())
    for prefix, name, entries in (("QAIRT_SDK", "qairt.zip", SDK), ("ANDROID_NDK", "ndk.zip", NDK)):
        archive = write_zip(options.folder / name, entries)
        print(f"{prefix}_URL=file://{seen}/{name}")
        print(f"{prefix}_SHA256={archive.sha256}")
        print(f"{prefix}_SIZE={archive.size}")


if __name__ == "__main__":
    main()
