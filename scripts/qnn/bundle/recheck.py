"""Checks a bundle from nothing but itself: its files, its binaries read back, its golden inputs run again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qnn.binary.gate import ExpectedBinary, ExpectedGraph, require_readback
from qnn.bundle.archive import extract_archive
from qnn.bundle.manifest import Manifest, ManifestGraph, ManifestTensor, from_json
from qnn.child import Host, Limits
from qnn.errors.bundles import DamagedBundle, InvalidManifest
from qnn.model.spec import Gates
from qnn.store import file_digest
from qnn.tensors import TensorSpec
from qnn.toolchains.protocol import RunRequest, Toolchain
from qnn.verify.comparison import OutputComparison
from qnn.verify.gates import Verdict, judge, verify_error

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Recheck:
    """What a second look at one graph found: one comparison and one verdict an output."""

    graph: str
    outputs: tuple[OutputComparison, ...]
    verdicts: tuple[Verdict, ...]


@contextmanager
def opened_bundle(path: Path) -> Iterator[Path]:
    """The folder of a bundle given as folder or archive; an archive is extracted for as long as it is open.

    Raises UnsafeArchive (QF703).
    """
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bundle-") as scratch:
        yield extract_archive(path, Path(scratch))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a bundle; raises InvalidManifest (QF701)."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        raise InvalidManifest(
            f"{folder} holds no readable {MANIFEST}", remedy="give the folder or the archive of a bundle"
        ) from None
    return from_json(text, folder / MANIFEST)


def check_files(folder: Path, manifest: Manifest) -> None:
    """Every file is listed, present and as listed; raises DamagedBundle (QF702) with every difference."""
    listed = {file.path: file for file in manifest.files}
    present = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    present.pop(MANIFEST, None)
    wrong = [f"{name}: missing" for name in sorted(set(listed) - set(present))]
    wrong += [f"{name}: not listed in the manifest" for name in sorted(set(present) - set(listed))]
    for name in sorted(set(listed) & set(present)):
        path, file = present[name], listed[name]
        if path.is_symlink():
            wrong.append(f"{name}: a link, not a file")
        elif path.stat().st_size != file.size:
            wrong.append(f"{name}: {path.stat().st_size} bytes, the manifest says {file.size}")
        elif file_digest(path) != file.sha256:
            wrong.append(f"{name}: its sha256 is not the manifest's")
    if wrong:
        raise DamagedBundle(
            f"{folder.name}: {len(wrong)} file(s) differ from the manifest",
            remedy="build or download the bundle again",
            details=wrong,
        )


def read_back(
    folder: Path, manifest: Manifest, graph: ManifestGraph, toolchain: Toolchain, host: Host, log: Path
) -> None:
    """Read a graph's binary back and hold it against the manifest; runs nothing.

    Raises ReadBackMismatch (QF603) and QF600 to QF602.
    """
    require_readback(toolchain.describe(folder / graph.binary, host, log=log), _expected(manifest, graph))


def recheck(folder: Path, manifest: Manifest, toolchain: Toolchain, host: Host, log: Path) -> tuple[Recheck, ...]:
    """Read every binary back, run the golden inputs on the emulator, compare with the golden outputs by the bundle's
    own gates.

    Raises ReadBackMismatch (QF603), QF5xx, and the verify errors QF620, QF622 and QF623.
    """
    return tuple(_recheck_graph(folder, manifest, graph, toolchain, host, log) for graph in manifest.graphs)


def _recheck_graph(
    folder: Path, manifest: Manifest, graph: ManifestGraph, toolchain: Toolchain, host: Host, log: Path
) -> Recheck:
    read_back(folder, manifest, graph, toolchain, host, log)
    with tempfile.TemporaryDirectory(prefix="qnn-forge-verify-") as scratch:
        samples, references = _golden(folder, manifest, graph, Path(scratch))
        output = Path(scratch) / "out"
        output.mkdir()
        request = RunRequest(
            graph=graph.name,
            outputs=tuple(tensor.name for tensor in graph.interface_outputs),
            folder=folder.absolute(),
            soc_id=manifest.chip.soc_id,
            samples=samples,
            references=references,
            output=output,
        )
        outputs = toolchain.run(request, host, log=log, limits=Limits())
    # A bundle that was not verified when it was made carries no gates of its own, so the defaults hold.
    gates = {numeric.name: numeric.gates for numeric in graph.numerics}
    verdicts = tuple(judge(output, gates.get(output.name, Gates()), None, manifest.precision) for output in outputs)
    error = verify_error(f"{manifest.name} {graph.name}", verdicts)
    if error is not None:
        raise error
    return Recheck(graph.name, outputs, verdicts)


def _expected(manifest: Manifest, graph: ManifestGraph) -> ExpectedBinary:
    return ExpectedBinary(
        soc_id=manifest.chip.soc_id,
        soc_name=manifest.chip.name,
        arch=manifest.chip.arch,
        vtcm_mb=manifest.chip.vtcm_mb,
        graphs=(
            ExpectedGraph(
                inputs=_in_binary(graph.interface_inputs, graph.inputs),
                outputs=_in_binary(graph.interface_outputs, graph.outputs),
                quantized=None,
                name=graph.graph_name,
            ),
        ),
        build_id=manifest.toolchain.build_id,
        qairt=manifest.toolchain.qairt,
    )


def _in_binary(interface: tuple[TensorSpec, ...], own: tuple[ManifestTensor, ...]) -> tuple[TensorSpec, ...]:
    """The wrapper's tensors that the binary has too; the wrapper alone keeps unused inputs and constant outputs."""
    names = {tensor.name for tensor in own}
    return tuple(tensor for tensor in interface if tensor.name in names)


def _golden(
    folder: Path, manifest: Manifest, graph: ManifestGraph, scratch: Path
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The golden files as .npz, which is what a toolchain runs."""
    from qnn.npz import write_npz  # noqa: PLC0415 - numpy
    from qnn.verify.golden import golden_layout, read_golden  # noqa: PLC0415

    layout = golden_layout(graph.name, graph.interface_inputs, graph.interface_outputs, manifest.golden)
    samples, references = [], []
    for number, (inputs, outputs) in enumerate(read_golden(folder, layout)):
        samples.append(scratch / f"in{number:03d}.npz")
        references.append(scratch / f"ref{number:03d}.npz")
        write_npz(samples[-1], inputs)
        write_npz(references[-1], outputs)
    return tuple(samples), tuple(references)
