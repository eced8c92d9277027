"""Exports a graph and holds the file to the module: calls of export.py, and of the jobs that look at what came out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnn.child import Host
from qnn.errors.base import ForgeError, Place
from qnn.errors.export import ParityFailed
from qnn.export.facts import ExportFacts, ParityFacts
from qnn.export.parity import Miss, Parity, ParityRequest
from qnn.export.search import Found, NamesRequest, SearchRequest
from qnn.export.take import TakeRequest
from qnn.model_code import ModelCode
from qnn.model_code.call import absolute, call

_IN_TORCH = Path(__file__).with_name("in_torch.py")
_SHOWN = 6


@dataclass(frozen=True)
class ExportCode:
    """A graph's own export function and what it is called with.

    `inputs` are the graph's inputs with the bucket's fixed shapes, `bucket` its symbols, `sources` the fetched files.
    """

    code: ModelCode
    graph: str
    inputs: Mapping[str, tuple[int, ...]]
    bucket: Mapping[str, int]
    sources: Mapping[str, Path]


def export(asked: ExportCode, folder: Path, host: Host) -> ExportFacts:
    """Export a graph into `folder`: ``<graph>.onnx`` and ``export.json``; the same code gives the same bytes.

    Raises the errors of qnn.errors.export (QF821 to QF826, QF828) and those of all model code (QF801 to QF804).
    """
    with tempfile.TemporaryDirectory(prefix="export-", dir=folder) as name:
        written = Path(name).absolute() / "model.onnx"
        answer = _in_torch(asked, "export", written=str(written))
        request = TakeRequest(written, asked.graph, asked.inputs, answer["exporter"], answer["packages"], folder)
        facts: ExportFacts = _job(asked, host, "qnn.export.take:take", request)
    return facts


def hold_to_module(
    asked: ExportCode, model: Path, samples: Sequence[Path], exported: Sequence[Path], host: Host
) -> ParityFacts:
    """Compare the exported file's results (.npz, a file a sample) with what the module computes on the samples.

    Raises ParityFailed (QF827), which names the first tensor that differs where that can be found.
    """
    with tempfile.TemporaryDirectory(prefix="qnn-forge-parity-") as name:
        folder = Path(name)
        module = _outputs(asked, samples, folder / "module", double=False)
        found = _parity(asked, host, ParityRequest(module, tuple(exported)))
        if not found.misses:
            return found.facts
        doubted = _in_double(asked, samples, folder / "double")
        if doubted:
            again = _parity(asked, host, ParityRequest(module, tuple(exported), doubted))
            if not again.misses:
                return again.facts
            found = again
        raise _failed(asked, found.misses, _search(asked, model, samples, found.misses, folder, host))


def _in_torch(asked: ExportCode, what: str, **more: object) -> dict[str, Any]:
    action = {
        "actions": str(_IN_TORCH),
        "action": "torch",
        "torch": what,
        "bucket": dict(asked.bucket),
        "inputs": [[name, list(shape)] for name, shape in asked.inputs.items()],
        "sources": absolute(asked.sources),
    }
    return call(asked.code, {**action, **more})


def _job(asked: ExportCode, host: Host, name: str, request: object) -> Any:
    try:
        return host.call(name, request, log=asked.code.log, limits=asked.code.limits)
    except ForgeError as error:
        raise error.at(Place(str(asked.code.file))) from None


def _parity(asked: ExportCode, host: Host, request: ParityRequest) -> Parity:
    found: Parity = _job(asked, host, "qnn.export.parity:parity", request)
    return found


def _outputs(asked: ExportCode, samples: Sequence[Path], folder: Path, *, double: bool) -> tuple[Path, ...]:
    folder.mkdir()
    paths = [str(sample.absolute()) for sample in samples]
    _in_torch(asked, "outputs", samples=paths, output=str(folder.absolute()), double=double)
    return tuple(folder / f"{number:03d}.npz" for number in range(len(samples)))


def _in_double(asked: ExportCode, samples: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """The module's results in double precision; none where it cannot compute in it."""
    try:
        return _outputs(asked, samples, folder, double=True)
    except ForgeError:
        return ()


def _search(
    asked: ExportCode, model: Path, samples: Sequence[Path], misses: Sequence[Miss], folder: Path, host: Host
) -> tuple[str, ...]:
    """Where the difference begins, in words; a search that fails says so and hides nothing."""
    names, tensors = folder / "names.json", folder / "tensors"
    tensors.mkdir()
    sample = samples[misses[0].sample]
    try:
        _job(asked, host, "qnn.export.search:write_names", NamesRequest(model, names))
        answer = _in_torch(
            asked,
            "intermediates",
            names=str(names.absolute()),
            sample=str(sample.absolute()),
            output=str(tensors.absolute()),
            written=os.fspath((folder / "again.onnx").absolute()),
        )
        found: Found = _job(asked, host, "qnn.export.search:search", SearchRequest(model, sample, names, tensors))
    except ForgeError as error:
        return (f"where it begins could not be found: {error.message}",)
    return _where(found, answer["origins"].get(found.name, []))


def _where(found: Found, origin: Sequence[str]) -> tuple[str, ...]:
    if not found.compared:
        return ("where it begins is not known: the older exporter leaves no names to compare by",)
    if not found.words:
        return (
            f"none of the {found.compared} tensors on the way differs from PyTorch's exported program: "
            "the difference arose when the module was traced, before ONNX",
        )
    target, *places = origin or ["?"]
    lines = f", {' in '.join(places)}" if places else ""
    return (
        f"first tensor that differs: {found.name}, made by {found.operator} from {target}{lines}",
        f"there: {found.words}",
    )


def _failed(asked: ExportCode, misses: Sequence[Miss], where: Sequence[str]) -> ParityFailed:
    first, *more = misses
    output = f"output {first.output} " if first.output else ""
    return ParityFailed(
        f"{asked.graph}: {output}of the exported file is not the module's on sample {first.sample}: {first.words}",
        remedy='write that operation another way, or return "exporter": "legacy" too; see qnn-forge explain',
        place=Place(str(asked.code.file)),
        details=[*where, *(f"{miss.output} on sample {miss.sample}: {miss.words}" for miss in more[:_SHOWN])],
        log=asked.code.log,
    )
