"""Real wheels, really downloaded by pip: one for Linux on Arm, one for Windows on Arm, one for Linux on x86_64.

`python -m tests.libs.all_wheels` does the same with all sixteen, all chips and --with prepare.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qnn.errors.libs import ArchNotServed
from qnn.libs.build import Built, Request, build_libraries
from qnn.libs.fetch import Assurance, Depot
from qnn.libs.packages import Arch, Os, Platform, find_package
from tests.libs import real


@pytest.fixture(scope="module")
def depot(tmp_path_factory: pytest.TempPathFactory) -> Depot:
    return Depot(tmp_path_factory.mktemp("downloads"))


def build(depot: Depot, folder: Path, os: Os, arch: Arch, *hexagons: str) -> Built:
    platform, chips = Platform(os, arch), real.chip_of_each_arch()
    package = find_package(platform, "2.51", None, None)
    wanted = tuple(chips[hexagon] for hexagon in hexagons)
    return build_libraries(Request(platform, wanted, package, False, 16384), depot, folder)


def test_linux_on_arm(depot: Depot, tmp_path: Path) -> None:
    built = build(depot, tmp_path / "out", Os.LINUX, Arch.AARCH64, "v75", "v81")
    assert built.made.assurance is Assurance.PINNED
    assert built.made.build_id == "v2.51.0.260929181845"
    names = sorted(path.name for path in real.check(built, tmp_path / "x"))
    halves = [f"libQnnHtpV{number}{half}.so" for number in (75, 81) for half in ("Skel", "Stub")]
    assert names == sorted(["libQnnHtp.so", "libQnnSystem.so", *halves])
    again = build(depot, tmp_path / "again", Os.LINUX, Arch.AARCH64, "v81", "v75")
    assert again.sha256 == built.sha256


def test_windows_on_arm(depot: Depot, tmp_path: Path) -> None:
    built = build(depot, tmp_path / "out", Os.WINDOWS, Arch.AARCH64, "v68", "v73", "v81")
    assert len(real.check(built, tmp_path / "x")) == 8
    catalogues = [file.wanted.target for file in built.made.files if file.wanted.target.endswith(".cat")]
    assert catalogues == ["lib/libqnnhtpv73.cat", "lib/libqnnhtpv81.cat"]
    with pytest.raises(ArchNotServed, match="v75; it has those for v68, v73, v81"):
        build(depot, tmp_path / "other", Os.WINDOWS, Arch.AARCH64, "v75")


_LOAD = """
import ctypes, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path)
print("exports", bool(ctypes.CDLL(sys.argv[1]).QnnSystemInterface_getProviders))
"""


def test_what_is_made_for_this_machine_loads_from_where_it_lies(depot: Depot, tmp_path: Path) -> None:
    built = build(depot, tmp_path / "out", Os.LINUX, Arch.X86_64, "v75")
    libraries = {path.name: str(path) for path in real.check(built, tmp_path / "x")}
    ours = [libraries[name] for name in ("libQnnSystem.so", "libQnnHtp.so")]
    assert len(libraries) == 5
    done = subprocess.run([sys.executable, "-c", _LOAD, *ours], check=True, capture_output=True, text=True, env={})
    assert "exports True" in done.stdout.splitlines()  # the libraries print lines of their own
