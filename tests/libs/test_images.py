"""Headers are read as they are and nonsense is refused: made libraries, mutated ones, real ones by another reader."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from qnn.libs.image import build_ids, image, read_image
from qnn.libs.raw import ImageError
from tests.libs.fake_images import AARCH64, BUILD, HEXAGON, PE_AMD64, X86_64, elf, pe, skel

_REAL = sorted((Path(sysconfig.get_path("purelib")) / "onnxruntime_qnn").glob("lib*.so"))


def test_an_elf_library() -> None:
    found = image(elf(soname="libQnnHtp.so", needed=("libc.so", "libdl.so"), alignment=65536))
    assert (found.format, found.machine, found.bits, found.hexagon) == ("elf", "aarch64", 64, None)
    assert (found.own_name, found.needed, found.alignment) == ("libQnnHtp.so", ("libc.so", "libdl.so"), 65536)
    assert found.builds == (BUILD,)


def test_a_skel() -> None:
    found = image(skel(75))
    assert (found.machine, found.bits, found.hexagon, found.alignment) == ("hexagon", 32, "v75", 4096)
    assert found.needed == ("libc++.so.1", "libc++abi.so.1")


def test_a_dll() -> None:
    found = image(pe(machine=PE_AMD64, needed=("KERNEL32.dll", "ADVAPI32.dll"), delayed=("wer.dll",)))
    assert (found.format, found.machine, found.own_name) == ("pe", "x86_64", "QnnHtp.dll")
    assert (found.needed, found.alignment) == (("KERNEL32.dll", "ADVAPI32.dll", "wer.dll"), None)


def test_a_library_without_names() -> None:
    found = image(elf(machine=X86_64))
    assert (found.own_name, found.needed) == (None, ())
    assert image(pe(name=None)).own_name is None


@pytest.mark.parametrize("machine", [8, 40])
def test_a_machine_that_qairt_does_not_have(machine: int) -> None:
    assert image(elf(machine=machine)).machine == f"{machine:#x}"


def _wide(*parts: str | bytes) -> bytes:
    """As a version resource has it: UTF-16, with padding."""
    return b"".join(part if isinstance(part, bytes) else part.encode("utf-16-le") for part in parts)


@pytest.mark.parametrize(
    ("data", "builds"),
    [
        (b"x v2.51.0.260929181845 y", ("v2.51.0.260929181845",)),
        (b"hexnn_ver_v2.51.0.260929181845.", ("v2.51.0.260929181845",)),
        (b"v2.28.0.241029232508_102474", ("v2.28.0.241029232508",)),
        (_wide("ProductVersion\0", bytes(2), "2.51.0.260929181845\0"), ("v2.51.0.260929181845",)),
        (_wide("ProductVersion\0", "10.0.1.2\0", bytes(40)), ()),
        (b"v2.51.0.2609291818450", ()),
        (b"AISW_VERSION: 2.51.0", ()),
        (b"v2.51.0.260929181845 v2.50.0.260828221209", ("v2.50.0.260828221209", "v2.51.0.260929181845")),
    ],
)
def test_build_ids(data: bytes, builds: tuple[str, ...]) -> None:
    assert build_ids(data) == builds


@pytest.mark.parametrize("whole", [elf(soname="a", needed=("b",)), skel(73), pe(delayed=("x.dll",))])
def test_a_library_that_is_cut_off(whole: bytes, tmp_path: Path) -> None:
    for length in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(ImageError):
            read_image(tmp_path / "cut")


_WHOLE = [elf(soname="libQnnHtp.so", needed=("libc.so",)), skel(75), pe(delayed=("wer.dll",))]


@given(st.sampled_from(_WHOLE), st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), max_size=8))
def test_no_bytes_make_it_fail_otherwise(whole: bytes, changes: list[tuple[int, int]]) -> None:
    data = bytearray(whole)
    for at, value in changes:
        data[at % len(data)] = value
    try:
        found = image(bytes(data))
    except ImageError:
        return
    assert found.format in ("elf", "pe")


def test_there_are_real_libraries() -> None:
    assert {path.name for path in _REAL} >= {"libQnnHtp.so", "libQnnSystem.so", "libHtpPrepare.so"}


@pytest.mark.parametrize("path", _REAL, ids=lambda path: path.name)
def test_real_libraries_are_read_as_pyelftools_reads_them(path: Path) -> None:
    ours = read_image(path)
    with path.open("rb") as stream:
        theirs = ELFFile(stream)
        segments = list(theirs.iter_segments())
        dynamic = [tag for one in segments if isinstance(one, DynamicSegment) for tag in one.iter_tags()]
        loads = [one["p_align"] for one in segments if one["p_type"] == "PT_LOAD"]
        needed = tuple(vars(tag)["needed"] for tag in dynamic if tag.entry.d_tag == "DT_NEEDED")
        sonames = [vars(tag)["soname"] for tag in dynamic if tag.entry.d_tag == "DT_SONAME"]
        machine, bits = theirs["e_machine"], theirs.elfclass
    assert (ours.needed, ours.alignment, ours.bits) == (needed, min(loads), bits)
    assert ours.own_name == (sonames[0] if sonames else None)
    assert (machine, ours.machine) == ("EM_X86_64", "x86_64")


def test_constants_are_those_of_the_formats() -> None:
    assert {image(elf(machine=number)).machine for number in (AARCH64, X86_64, HEXAGON)} == {
        "aarch64",
        "x86_64",
        "hexagon",
    }
