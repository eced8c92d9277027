"""Taking over the file that PyTorch's exporter wrote: checked, without notes, in stable bytes. A job for a child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qnn.errors.export import ExportInputs
from qnn.export.facts import ExportFacts, save_export

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True)
class TakeRequest:
    """`written` is the exporter's file; `inputs` what it must take, with fixed shapes; `folder` receives
    ``<graph>.onnx`` (``.onnx.data`` beside it for large weights) and ``export.json``. Picklable.
    """

    written: Path
    graph: str
    inputs: Mapping[str, tuple[int, ...]]
    exporter: str
    packages: Mapping[str, str]
    folder: Path


def take(request: TakeRequest) -> ExportFacts:
    """Write the file anew, without the exporter's notes: they hold paths of this machine.

    Raises ExportInputs (QF822) where its inputs are not those asked for; what qnn.prepare.load raises (QF401…).
    """
    from qnn.prepare.load import load  # noqa: PLC0415 - onnx; the parent imports this module
    from qnn.prepare.strip import strip  # noqa: PLC0415
    from qnn.prepare.write import write_model  # noqa: PLC0415

    model = load(request.written)
    _compare_inputs(model, request.inputs)
    strip(model, request.graph)
    facts = ExportFacts(
        exporter=request.exporter,
        opset=next((int(entry.version) for entry in model.opset_import if entry.domain == ""), 0),
        packages=dict(sorted(request.packages.items())),
        files=write_model(model, request.graph, request.folder),
    )
    save_export(facts, request.folder)
    return facts


def _compare_inputs(model: ModelProto, wanted: Mapping[str, tuple[int, ...]]) -> None:
    weights = {tensor.name for tensor in model.graph.initializer}
    has = {
        value.name: tuple(dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim)
        for value in model.graph.input
        if value.name not in weights
    }
    faults = [f"lacks {name}, which forward does not use" for name in wanted if name not in has]
    faults += [f"has {name}, which model.yaml does not list" for name in has if name not in wanted]
    faults += [
        f"{name} has shape {list(has[name])}, model.yaml gives {list(shape)}"
        for name, shape in wanted.items()
        if name in has and has[name] != shape
    ]
    if faults:
        raise ExportInputs(
            f"of the exported file's inputs, {faults[0]}",
            remedy="let forward use exactly the inputs of model.yaml, as tensors",
            details=faults[1:],
        )
