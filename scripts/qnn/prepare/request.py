"""What preparation is asked to do. Light: the parent process imports this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qnn.model.spec import InputSpec
from qnn.prepare.prepared import PreparedGraph

__all__ = ["PrepareRequest", "PreparedGraph"]


@dataclass(frozen=True)
class PrepareRequest:
    """Prepare one graph for one bucket.

    `source` is the ONNX file (external data beside it); `graph` its name in model.yaml, which names the files made;
    `inputs` every input as declared; `bucket` the integers of the symbols in their shapes; `folder` (existing)
    receives ``<graph>.onnx``, ``<graph>.onnx.data`` for a large model, and ``prepared.json``. `outputs` are tensors at
    which the graph is cut (none: its own outputs). `rewrites` switches rewrites (qnn.prepare.rewrites) on and off by
    name; the others run by their own default. Picklable.
    """

    source: Path
    graph: str
    inputs: tuple[InputSpec, ...]
    bucket: Mapping[str, int]
    folder: Path
    outputs: tuple[str, ...] = ()
    rewrites: Mapping[str, bool] = field(default_factory=dict)
