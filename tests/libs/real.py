"""What is checked of a set of libraries made from a real package."""

from __future__ import annotations

import hashlib
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pefile
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from qnn.bundle.archive import extract_archive
from qnn.chips.soc import ARCHES, Soc
from qnn.chips.table import load_table
from qnn.cli import run
from qnn.errors.base import ExitCode
from qnn.libs.build import Built
from qnn.libs.image import read_image
from qnn.libs.recognise import HEAD_BYTES, is_qairt_library


def chip_of_each_arch() -> dict[str, Soc]:
    """A chip for every Hexagon version."""
    table = load_table()
    return {arch: next(chip for chip in table.socs if chip.arch == arch) for arch in ARCHES}


def check(built: Built, folder: Path) -> list[Path]:
    """Unpack an archive, hold it against its manifest, other readers of headers and the rule of publishing.

    Returns its libraries.
    """
    root = extract_archive(built.archive, folder)
    manifest = json.loads((root / "manifest.json").read_text())
    files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert files == {entry["path"] for entry in manifest["files"]} | {"manifest.json"}
    assert "licences/Qualcomm_LICENSE.pdf" in manifest["licence"]["files"]
    libraries = []
    for entry in manifest["files"]:
        path = root / entry["path"]
        with path.open("rb") as stream:
            assert hashlib.file_digest(stream, "sha256").hexdigest() == entry["sha256"]
        if "image" in entry:
            libraries.append(path)
            assert entry["image"]["build_ids"] in ([], [manifest["build_id"]])
            _hold_against_others(path)
        if "image" in entry or entry["role"] == "catalogue":
            with path.open("rb") as stream:
                assert is_qairt_library(path.name, stream.read(HEAD_BYTES)), path.name
    with built.archive.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    assert is_qairt_library(built.archive.name, b"")
    assert is_qairt_library("renamed", head)
    _offer_for_publication(built.archive)
    return libraries


def _offer_for_publication(archive: Path) -> None:
    """What the command says to it: no."""
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(said):
        code = run(["publish", str(archive.parent), "--to", "folder", "--folder", str(archive.parent / "public")])
    assert (code, "QF753" in said.getvalue()) == (ExitCode.PUBLISH, True), said.getvalue()
    assert not (archive.parent / "public").exists()


def _hold_against_others(path: Path) -> None:
    ours = read_image(path)
    if ours.format == "pe":
        with pefile.PE(str(path), fast_load=True) as dll:
            dll.parse_data_directories([0, 1, 13])
            lists = (getattr(dll, "DIRECTORY_ENTRY_IMPORT", []), getattr(dll, "DIRECTORY_ENTRY_DELAY_IMPORT", []))
            needed = [entry.dll.decode() for entries in lists for entry in entries]
            assert (list(ours.needed), ours.own_name) == (needed, dll.DIRECTORY_ENTRY_EXPORT.name.decode()), path.name
            assert ours.machine == {0xAA64: "aarch64", 0x8664: "x86_64"}[dll.FILE_HEADER.Machine]
        return
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        tags = [tag for one in elf.iter_segments() if isinstance(one, DynamicSegment) for tag in one.iter_tags()]
        assert ours.needed == tuple(vars(tag)["needed"] for tag in tags if tag.entry.d_tag == "DT_NEEDED"), path.name
        assert ours.own_name in [vars(tag)["soname"] for tag in tags if tag.entry.d_tag == "DT_SONAME"]
        machines = {"EM_AARCH64": "aarch64", "EM_X86_64": "x86_64", "EM_QDSP6": "hexagon"}
        assert ours.machine == machines[elf["e_machine"]]
