"""Which files go onto the device, and bringing them there: only those that are not there with the same sha256."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qnn.device.adb import Device
from qnn.device.native import Pair, pairs, to_binary
from qnn.device.paths import command, fit
from qnn.errors.bundles import DamagedBundle
from qnn.errors.device import DeviceRefused
from qnn.errors.numerics import GoldenUnusable
from qnn.store import file_digest
from qnn.verify.golden import golden_layout, read_golden

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qnn.bundle.manifest import Manifest, ManifestGraph

_SUM = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?(.+)")
# Two commands' worth of digests tell a set from any other.
_DIGITS = 24


@dataclass(frozen=True)
class StagedFile:
    """One file: its path below the folder on the device, where it is here, its sha256."""

    path: str
    local: Path
    sha256: str


@dataclass(frozen=True)
class StagedGraph:
    """What one graph needs on the device and what it is compared with.

    `binary` and `input_list` are paths below the bundle's folder on the device. `outputs` pairs the golden outputs with
    the binary's; `references` are the golden outputs of each sample by name.
    """

    graph: ManifestGraph
    binary: str
    input_list: str
    outputs: tuple[Pair, ...]
    references: tuple[Mapping[str, NDArray[Any]], ...]


@dataclass(frozen=True)
class Staged:
    """A folder's worth of files."""

    files: tuple[StagedFile, ...]

    @property
    def digest(self) -> str:
        """A name for exactly these files."""
        text = "".join(f"{file.sha256}  {file.path}\n" for file in sorted(self.files, key=lambda file: file.path))
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def stage_bundle(folder: Path, manifest: Manifest, scratch: Path) -> tuple[Staged, tuple[StagedGraph, ...]]:
    """The bundle's binaries and golden inputs, the latter as the binaries take them, written below `scratch`.

    Raises GoldenUnusable (QF625), OutputsMissing (QF795), UnfitDevicePath (QF792), DamagedBundle (QF702).
    """
    if manifest.golden < 1:
        raise GoldenUnusable(
            f"{manifest.name} has no golden samples to run", remedy="build it again, without leaving verification out"
        )
    listed = {file.path: file.sha256 for file in manifest.files}
    files, graphs = [], []
    for graph in manifest.graphs:
        if graph.binary not in listed:
            raise DamagedBundle(
                f"{graph.binary} is not among the files of {manifest.name}", remedy="build or download the bundle again"
            )
        files.append(StagedFile(fit(graph.binary), folder / graph.binary, listed[graph.binary]))
        inputs, staged = _stage_golden(folder, manifest, graph, scratch)
        files += inputs
        graphs.append(staged)
    return Staged(tuple(files)), tuple(graphs)


def _stage_golden(
    folder: Path, manifest: Manifest, graph: ManifestGraph, scratch: Path
) -> tuple[list[StagedFile], StagedGraph]:
    golden = golden_layout(graph.name, graph.interface_inputs, graph.interface_outputs, manifest.golden)
    names = {entry.tensor.name: entry.file for entry in golden.inputs}
    inputs = pairs(graph.interface_inputs, graph.inputs, f"{graph.name}'s inputs")
    outputs = pairs(graph.interface_outputs, graph.outputs, f"{graph.name}'s outputs")
    # The list's format splits at blanks and at ":="; a name with one of them is left out, then the order counts.
    bare = any(re.search(r"\s|:=", pair.binary.name) for pair in inputs)
    files, lines, references = [], [], []
    for number, (arrays, expected) in enumerate(read_golden(folder, golden)):
        words = []
        for pair in inputs:
            path = fit(f"inputs/{graph.name}/{number:03d}/{names[pair.golden.name]}")
            files.append(_written(scratch, path, to_binary(pair, arrays[pair.golden.name]).tobytes()))
            words.append(path if bare else f"{pair.binary.name}:={path}")
        lines.append(" ".join(words) + "\n")
        references.append(expected)
    listing = fit(f"inputs/{graph.name}/input_list.txt")
    files.append(_written(scratch, listing, "".join(lines).encode()))
    return files, StagedGraph(graph, graph.binary, listing, outputs, tuple(references))


def _written(scratch: Path, path: str, data: bytes) -> StagedFile:
    target = scratch / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return StagedFile(path, target, hashlib.sha256(data).hexdigest())


def bring(device: Device, staged: Staged, folder: str, sending: Callable[[str], None]) -> int:
    """Make `folder` on the device hold exactly the files; returns how many were sent. `sending` hears each one's path.

    Files are read back by their sha256 before and after: one that came half is sent again the next time. Raises
    DeviceRefused (QF785), DeviceFull (QF786), DeviceLost (QF784).
    """
    device.do(command("mkdir", "-p", folder), f"make {folder}")
    wanted = {file.path: file for file in staged.files}
    there = _sums(device, folder)
    stale = sorted(path for path, sha256 in there.items() if path not in wanted or wanted[path].sha256 != sha256)
    if stale:
        # Whatever else lies here came from a transfer that broke, or from somebody else.
        device.do(command("rm", "-f", "--", *(f"{folder}/{path}" for path in stale)), "remove what is out of date")
    missing = [file for path, file in sorted(wanted.items()) if there.get(path) != file.sha256]
    folders = sorted({f"{folder}/{file.path}".rpartition("/")[0] for file in missing})
    if folders:
        device.do(command("mkdir", "-p", *folders), f"make folders below {folder}")
    for file in missing:
        sending(file.path)
        device.push(file.local, f"{folder}/{file.path}")
    if missing:
        found = _sums(device, folder)
        wrong = sorted(path for path, file in wanted.items() if found.get(path) != file.sha256)
        if wrong:
            raise DeviceRefused(
                f"{len(wrong)} file(s) arrived on the device with other bytes",
                remedy="run it again; try another cable if it stays",
                details=wrong,
            )
    return len(missing)


def remote_digest(device: Device, path: str) -> str:
    """sha256 of a file on the device. Raises DeviceRefused (QF785)."""
    # Without -b: Android's toybox takes that for "no file names".
    sums = parse_sums(device.do(command("sha256sum", path), f"read {path}").out)
    return next(iter(sums.values()), "")


def parse_sums(text: str) -> dict[str, str]:
    """Path → sha256 from the output of sha256sum; a leading ``./`` is dropped."""
    found = (_SUM.fullmatch(line.strip()) for line in text.splitlines())
    return {match[2]: match[1] for match in found if match is not None}


def _sums(device: Device, folder: str) -> dict[str, str]:
    line = f"cd {command(folder)} && find . -type f -exec sha256sum {{}} +"
    return parse_sums(device.do(line, f"read {folder}").out)


def stage_files(files: Sequence[tuple[str, Path]]) -> Staged:
    """Files by the name they shall have on the device. Raises UnfitDevicePath (QF792)."""
    return Staged(tuple(StagedFile(fit(name), local, file_digest(local)) for name, local in files))
