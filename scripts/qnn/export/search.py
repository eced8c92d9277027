"""Finds the first tensor of an exported file that is not what PyTorch's exported program computes. Jobs for a child."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto

# Tensors that are kept of one run of the file, so that memory stays bounded.
_AT_ONCE = 32


@dataclass(frozen=True)
class NamesRequest:
    """Write the names of all tensors that the file's nodes make, in the order they are made, to `names` (JSON)."""

    model: Path
    names: Path


@dataclass(frozen=True)
class SearchRequest:
    """`tensors` holds NNNNN.npy with what PyTorch computes for `sample` (.npz) under the name at that place of
    `names`.
    """

    model: Path
    sample: Path
    names: Path
    tensors: Path


@dataclass(frozen=True)
class Found:
    """What a search found: the first tensor that differs, its operator, how it differs; empty words when none does.

    `compared` is how many tensors were compared.
    """

    compared: int
    name: str = ""
    operator: str = ""
    words: str = ""


def write_names(request: NamesRequest) -> None:
    """See NamesRequest."""
    request.names.write_text(json.dumps(_names(_read(request.model))), encoding="utf-8")


def search(request: SearchRequest) -> Found:
    """Compare what both compute on the way to the outputs, first things first."""
    import numpy as np  # noqa: PLC0415 - the parent imports this module

    from qnn.export.difference import difference  # noqa: PLC0415

    model = _read(request.model)
    names: list[str] = json.loads(request.names.read_text(encoding="utf-8"))
    known = [(place, name) for place, name in enumerate(names) if _file(request.tensors, place).exists()]
    makers = {output: node.op_type for node in model.graph.node for output in node.output}
    compared = 0
    for start in range(0, len(known), _AT_ONCE):
        batch = known[start : start + _AT_ONCE]
        for (place, name), value in zip(batch, _run(model, request, [name for _, name in batch]), strict=True):
            compared += 1
            found = difference(np.load(_file(request.tensors, place)), value)
            if not found.passes:
                return Found(compared, name, makers[name], str(found))
    return Found(compared)


def _file(folder: Path, place: int) -> Path:
    return folder / f"{place:05d}.npy"


def _read(path: Path) -> ModelProto:
    import onnx  # noqa: PLC0415

    return onnx.load(path, load_external_data=False)


def _names(model: ModelProto) -> list[str]:
    return [name for node in model.graph.node for name in node.output if name]


def _run(model: ModelProto, request: SearchRequest, names: Sequence[str]) -> Iterator[Any]:
    """The file's own values of some tensors on the sample."""
    from onnx import ModelProto, ValueInfoProto  # noqa: PLC0415

    from qnn.files import link_or_copy  # noqa: PLC0415
    from qnn.npz import read_npz  # noqa: PLC0415
    from qnn.verify.reference import ReferenceRequest, reference  # noqa: PLC0415

    exposed = ModelProto()
    exposed.CopyFrom(model)
    del exposed.graph.output[:]
    exposed.graph.output.extend(_type_of(model, name) or ValueInfoProto(name=name) for name in names)
    with tempfile.TemporaryDirectory(prefix="qnn-forge-search-", dir=request.tensors) as folder:
        file = Path(folder) / request.model.name
        file.write_bytes(exposed.SerializeToString())
        data = request.model.with_name(f"{request.model.name}.data")
        if data.exists():
            link_or_copy(data, file.with_name(data.name))
        (results,) = reference(ReferenceRequest(file, (request.sample,), Path(folder))).files
        values = read_npz(results)
    yield from (values[name] for name in names)


def _type_of(model: ModelProto, name: str) -> Any:
    return next((value for value in (*model.graph.value_info, *model.graph.output) if value.name == name), None)
