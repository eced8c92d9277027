"""What a compile left, as it is kept in the store beside the binary: the facts read back from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from qnn.binary.info import ContextBinary, TensorInfo
from qnn.bundle.manifest import ManifestTensor

_FILE = "readback.json"


@dataclass(frozen=True)
class Compiled:
    """One context binary of one graph, read back and found equal to the plan. Sizes are bytes, `vtcm_mb` MB."""

    build_id: str
    blob_version: str
    graph_name: str
    inputs: tuple[ManifestTensor, ...]
    outputs: tuple[ManifestTensor, ...]
    vtcm_mb: int | None
    hvx_threads: int | None
    optimization_level: int | None
    spill_fill_bytes: int | None


def compiled_facts(binary: ContextBinary) -> Compiled:
    """The facts of a binary that holds one graph (the read-back gate has seen to that)."""
    (graph,) = binary.graphs
    return Compiled(
        build_id=binary.build_id,
        blob_version=str(binary.blob_version),
        graph_name=graph.name,
        inputs=tuple(_tensor(tensor) for tensor in graph.inputs),
        outputs=tuple(_tensor(tensor) for tensor in graph.outputs),
        vtcm_mb=graph.vtcm_mb,
        hvx_threads=graph.hvx_threads,
        optimization_level=graph.optimization_level,
        spill_fill_bytes=graph.spill_fill_bytes,
    )


def save_compiled(facts: Compiled, folder: Path) -> None:
    """Write readback.json."""
    from cattrs import unstructure  # noqa: PLC0415

    (folder / _FILE).write_text(json.dumps(unstructure(facts), sort_keys=True, indent=1), encoding="utf-8")


def load_compiled(folder: Path) -> Compiled:
    """Read readback.json."""
    from cattrs import structure  # noqa: PLC0415

    return structure(json.loads((folder / _FILE).read_text(encoding="utf-8")), Compiled)


def _tensor(tensor: TensorInfo) -> ManifestTensor:
    quantization = tensor.quantization
    return ManifestTensor(
        name=tensor.name,
        dtype=tensor.dtype_label,
        shape=tensor.shape,
        scale=() if quantization is None else quantization.scales,
        offset=() if quantization is None else quantization.offsets,
        axis=None if quantization is None else quantization.axis,
    )
