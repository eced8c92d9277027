"""Exports a graph and holds the file to the module: calls of export.py, and of the jobs that look at what came out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnn.child import Host
from qnn.errors.base import ForgeError, Place
from qnn.errors.export import ParityFailed
from qnn.export.facts import ExportFacts, ParityFacts, load_export
from qnn.export.parity import Miss, Parity, ParityRequest
from qnn.export.search import Found, NamesRequest, SearchRequest
from qnn.export.take import TakeRequest
from qnn.export.traced import Placed, PlaceRequest
from qnn.model_code import ModelCode
from qnn.model_code.call import absolute, call

_IN_TORCH = Path(__file__).with_name("in_torch.py")
_CALLS_IN_TORCH = Path(__file__).with_name("in_torch_calls.py")
_SHOWN = 6
_WITH_LEGACY = 'write that operation another way, or return "exporter": "legacy" too; see qnn-forge explain'
_WITHOUT_LEGACY = 'write that operation another way, or leave out "exporter": "legacy"; see qnn-forge explain'


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


# Has PyTorch's own tensors written for a search; by name, what makes each and on which lines of Python.
_Known = Callable[[ExportCode, SearchRequest, Path, Host], Mapping[str, Sequence[str]]]


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
        legacy = load_export(model.parent).exporter == "legacy"
        known = _of_calls if legacy else _of_program
        request = SearchRequest(model, samples[found.misses[0].sample].absolute(), folder / "names.json", folder / "in")
        where = _search(asked, request, known, folder / "again.onnx", host)
        raise _failed(asked, found.misses, where, _WITHOUT_LEGACY if legacy else _WITH_LEGACY)


def _in_torch(asked: ExportCode, what: str, actions: Path = _IN_TORCH, **more: object) -> dict[str, Any]:
    action = {
        "actions": str(actions),
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


def _search(asked: ExportCode, request: SearchRequest, known: _Known, again: Path, host: Host) -> tuple[str, ...]:
    """Where the difference begins, in words; a search that fails says so and hides nothing."""
    request.tensors.mkdir()
    try:
        _job(asked, host, "qnn.export.search:write_names", NamesRequest(request.model, request.names))
        origins = known(asked, request, again, host)
        found: Found = _job(asked, host, "qnn.export.search:search", request)
    except ForgeError as error:
        return (f"where it begins could not be found: {error.message}",)
    return _where(found, origins.get(found.name, []))


def _of_program(asked: ExportCode, request: SearchRequest, again: Path, _: Host) -> Mapping[str, Sequence[str]]:
    """Those of torch.export's program, which has the names of the file."""
    answer = _in_torch(
        asked,
        "intermediates",
        names=str(request.names.absolute()),
        sample=str(request.sample),
        output=str(request.tensors.absolute()),
        written=os.fspath(again.absolute()),
    )
    origins: Mapping[str, Sequence[str]] = answer["origins"]
    return origins


def _of_calls(asked: ExportCode, request: SearchRequest, again: Path, host: Host) -> Mapping[str, Sequence[str]]:
    """Those of the calls that the older exporter traced, found in its file by what each tensor is computed from."""
    answer = _in_torch(
        asked,
        "calls",
        _CALLS_IN_TORCH,
        sample=str(request.sample),
        output=str(request.tensors.absolute()),
        written=os.fspath(again.absolute()),
    )
    asked_of = PlaceRequest(request.model, again, answer["outputs"], request.names, request.tensors)
    placed: tuple[Placed, ...] = _job(asked, host, "qnn.export.traced:place", asked_of)
    return {tensor.name: answer["origins"][tensor.call] for tensor in placed}


def _where(found: Found, origin: Sequence[str]) -> tuple[str, ...]:
    if not found.compared:
        return (
            "where it begins is not known: on this sample PyTorch computes no tensor as the file does; "
            "tracing takes a choice by the inputs' values for good",
        )
    if not found.words:
        return (
            f"none of the {found.compared} tensors that can be compared differs from what PyTorch computes: "
            "the difference arose when the module was traced, before ONNX",
        )
    target, *places = origin or ["?"]
    lines = f", {' in '.join(places)}" if places else ""
    return (
        f"first tensor that differs: {found.name}, made by {found.operator} from {target}{lines}",
        f"there: {found.words}",
    )


def _failed(asked: ExportCode, misses: Sequence[Miss], where: Sequence[str], remedy: str) -> ParityFailed:
    first, *more = misses
    output = f"output {first.output} " if first.output else ""
    return ParityFailed(
        f"{asked.graph}: {output}of the exported file is not the module's on sample {first.sample}: {first.words}",
        remedy=remedy,
        place=Place(str(asked.code.file)),
        details=[*where, *(f"{miss.output} on sample {miss.sample}: {miss.words}" for miss in more[:_SHOWN])],
        log=asked.code.log,
    )
