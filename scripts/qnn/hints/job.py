"""Compile one graph with the compiler's own records on, and look for hints. Runs in a child: `qnn.hints.job:look`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto

from qnn.binary.qnn_system import read_context_binary
from qnn.errors.ranges import RangeRunFailed
from qnn.files import link_or_copy
from qnn.hints.facts import Hint, HintRequest
from qnn.hints.qnn_graph import QnnGraph, qnn_graph
from qnn.hints.registry import hints_of
from qnn.hints.seen import Filled, Seen
from qnn.npz import read_npz
from qnn.prepare.rewrites.view import Array, GraphView
from qnn.ranges.compiled_form import compiled_form, prepared_form
from qnn.toolchains.pip.op_trace import TRACE_FILE
from qnn.toolchains.pip.session import ORT_ERRORS, CompileOptions, compile_options, compiling_session

_WRAPPER = "hints_ctx.onnx"
_NOT_THE_GRAPH = "_tensor_log"


@dataclass(frozen=True)
class _Dumping(CompileOptions):
    """Compile options that also have the provider write the QNN graph as JSON."""

    def provider_options(self) -> dict[str, str]:
        """Those of every compile, and the dump into ./dump."""
        return {**super().provider_options(), "dump_json_qnn_graph": "1", "json_qnn_graph_dir": "dump"}


def look(request: HintRequest) -> tuple[Hint, ...]:
    """The hints of one graph. One that does not compile has those that need no compile."""
    model = _as_compiled(request.files[0])
    names = {node.name for node in model.graph.node}
    graph, spill = _compiled(request, names)
    return hints_of(
        Seen(
            view=GraphView(model),
            qnn=graph,
            soc=request.soc,
            float_graph=request.float_graph,
            spill_bytes=spill,
            filled=_filled(request),
            integer_chips=request.integer_chips,
        )
    )


def _as_compiled(path: Path) -> ModelProto:
    """The graph after the fusions that ONNX Runtime makes first: the compiler's records have its node names."""
    try:
        return compiled_form(path)
    except RangeRunFailed:
        return prepared_form(path)


def _compiled(request: HintRequest, names: set[str]) -> tuple[QnnGraph, int | None]:
    """The QNN graph, and the bytes of the spill/fill buffer of all its graphs, None where the binary does not say."""
    for file in request.files:
        link_or_copy(file, Path(file.name))
    trace = Path("trace")
    for folder in (trace, Path("dump")):
        folder.mkdir()
    plain = compile_options(request.soc, float_graph=request.float_graph, trace_folder=trace)
    options = _Dumping(plain.soc_id, plain.vtcm_mb, plain.fp16, plain.trace_folder)
    try:
        compiling_session(request.files[0].name, _WRAPPER, options)
    except ORT_ERRORS:
        return QnnGraph(), None
    dumps = [path for path in sorted(Path("dump").glob("*.json")) if _NOT_THE_GRAPH not in path.name]
    record = (trace / TRACE_FILE).read_text(encoding="utf-8") if (trace / TRACE_FILE).exists() else ""
    graph = qnn_graph(dumps[0].read_text(encoding="utf-8"), record, names) if len(dumps) == 1 else QnnGraph()
    return graph, _spill(sorted(Path(".").glob("*.bin")))


def _spill(binaries: list[Path]) -> int | None:
    known = [
        graph.spill_fill_bytes
        for path in binaries
        for graph in read_context_binary(path).graphs
        if graph.spill_fill_bytes is not None
    ]
    return max(known, default=None)


def _filled(request: HintRequest) -> tuple[Filled, ...]:
    if not request.axes:
        return ()
    used: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for sample in request.samples:
        arrays = read_npz(sample)
        for index, axis in enumerate(request.axes):
            array = arrays[axis.tensor]
            sizes[index] = array.shape[axis.axis]
            found = used_of(array, axis.axis)
            if found is not None:
                used[index] = max(used.get(index, 0), found)
    return tuple(
        Filled(request.axes[index].tensor, request.axes[index].symbol, sizes[index], count)
        for index, count in sorted(used.items())
    )


def used_of(array: Array, axis: int) -> int | None:
    """How many elements along an axis are not the padding at its end: slices that are equal to the last one.

    None of an array of zeros, which says nothing (a first state); all of one that is constant otherwise (a mask).
    """
    slices = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    other = np.flatnonzero((slices != slices[-1]).any(axis=1))
    if other.size:
        return int(other[-1]) + 1
    return int(array.shape[axis]) if array.any() else None
