"""python -m tests.libs.all_wheels: package the libraries of every known wheel for every platform, and print a table.

Each wheel (60 to 200 MB) is downloaded, packaged for every chip that it serves, checked, and removed again. Takes
some minutes and needs about 2 GB of disk. The table is in docs/runtime-libraries.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from qnn.errors.libs import ArchNotServed
from qnn.libs.build import Request, build_libraries
from qnn.libs.fetch import Depot
from qnn.libs.packages import Arch, Os, Platform, find_package, qairt_of
from qnn.toolchains.pip.toolchain import KNOWN_BUILDS
from tests.libs import real

_PLATFORMS = [Platform(os, arch) for os in (Os.LINUX, Os.WINDOWS) for arch in (Arch.AARCH64, Arch.X86_64)]


def main() -> int:
    """Print the table; 1 if anything is amiss (which raises)."""
    print("| onnxruntime-qnn | QAIRT build | platform | wheel MB | chips served | files | archive MB | publishing |")
    print("|---|---|---|--:|---|--:|--:|---|")
    began = time.monotonic()
    for version, build in KNOWN_BUILDS.items():
        for platform in _PLATFORMS:
            with tempfile.TemporaryDirectory(prefix="all-wheels-") as scratch:
                print(_row(platform, version, build, Path(scratch)), flush=True)
    print(f"{len(KNOWN_BUILDS) * len(_PLATFORMS)} wheels in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


def _row(platform: Platform, version: str, build: str, scratch: Path) -> str:
    package = find_package(platform, qairt_of(build), None, None)
    assert package.version == version
    depot, served, chips = Depot(scratch / "downloads"), [], real.chip_of_each_arch()
    if platform.arch is Arch.X86_64:
        chips = {"v75": chips["v75"]}  # all chips have the same libraries there
    for arch, chip in chips.items():
        try:
            built = build_libraries(Request(platform, (chip,), package, False, 16384), depot, scratch / arch)
        except ArchNotServed:
            continue
        served.append(arch)
        real.check(built, scratch / f"x-{arch}")
    every = tuple(chips[arch] for arch in served)
    whole = build_libraries(Request(platform, every, package, True, 16384), depot, scratch / "all")
    real.check(whole, scratch / "x-all")
    assert whole.made.build_id == build
    size, archive = whole.made.size / 1e6, whole.size / 1e6
    named = "(no NPU)" if platform.arch is Arch.X86_64 else ", ".join(served)
    cells = [version, build, str(platform), f"{size:.0f}", named, str(len(whole.made.files)), f"{archive:.0f}"]
    return f"| {' | '.join(cells)} | refused |"


if __name__ == "__main__":
    sys.exit(main())
