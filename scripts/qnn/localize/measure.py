"""Compile a stretch of the graph, run it on the emulator, compare. Runs in a child: `qnn.localize.measure:measure`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import ModelProto

from qnn.errors.localize import ProbeFailed
from qnn.errors.ranges import RangeRunFailed
from qnn.files import link_or_copy
from qnn.localize.facts import Measured, Measurement, QnnOp, Spread, Stretch
from qnn.localize.judge import fault
from qnn.localize.request import CompareRequest, StretchRequest
from qnn.localize.spread import spreads
from qnn.localize.stretches import stretch_of
from qnn.localize.trace import qnn_ops
from qnn.npz import read_npz
from qnn.ranges.compiled_form import run, session_of
from qnn.toolchains.pip.op_trace import TRACE_FILE
from qnn.toolchains.pip.session import ORT_ERRORS, compile_options, compiling_session, loading_session
from qnn.verify.compare import compare_sample

_MODEL = "localize.onnx"
_WRAPPER = "localize_ctx.onnx"

Arrays = Mapping[str, NDArray[Any]]


def measure(request: StretchRequest) -> Measurement:
    """The stretch's outputs on the NPU, its inputs being what the CPU makes of the nodes before it.

    Works in the current folder, an empty one beside which nothing is read but the survey's folder. Raises ProbeFailed
    (QF642) when the stretch does not run on the CPU, does not compile, or does not run on the emulator.
    """
    model = onnx.load(request.file, load_external_data=False)
    part = stretch_of(model, request.stretch, request.outputs)
    names = [value.name for value in part.graph.output]
    given = [value.name for value in part.graph.input]
    sample = read_npz(request.sample)
    true = _on_cpu(model, request, [*given, *names], sample)
    found, ops = _on_npu(part, request, {name: true[name] for name in given})
    tensors = tuple(_measured(name, true[name], found[name], request.threshold) for name in names)
    return Measurement(tensors, ops)


def compare_preparation(request: CompareRequest) -> tuple[Measured, ...]:
    """The prepared graph on the CPU against the float model's results on one sample: what preparation changed."""
    model = onnx.load(request.model, load_external_data=False)
    sample, truth = read_npz(request.sample), read_npz(request.truth)
    names = [value.name for value in model.graph.output if value.name in truth]
    try:
        found = run(session_of(model, request.model.parent), names, _inputs(model, sample))
    except RangeRunFailed as error:
        raise ProbeFailed(error.message, remedy="read ONNX Runtime's reason in the message") from None
    return tuple(
        _measured(name, truth[name], array, request.threshold) for name, array in zip(names, found, strict=True)
    )


def _on_cpu(model: ModelProto, request: StretchRequest, wanted: list[str], sample: Arrays) -> dict[str, NDArray[Any]]:
    """The true values of tensors, graph inputs among them."""
    own = {name: sample[name] for name in wanted if name in sample}
    made = [name for name in dict.fromkeys(wanted) if name not in own]
    if not made:
        return own
    before = stretch_of(model, Stretch(0, request.stretch.stop), made)
    try:
        arrays = run(session_of(before, request.file.parent), made, _inputs(before, sample))
    except RangeRunFailed as error:
        raise ProbeFailed(error.message, remedy="read ONNX Runtime's reason in the message") from None
    return {**own, **dict(zip(made, arrays, strict=True))}


def _inputs(model: ModelProto, sample: Arrays) -> dict[str, NDArray[Any]]:
    return {value.name: sample[value.name] for value in model.graph.input}


def _on_npu(
    part: ModelProto, request: StretchRequest, feeds: Arrays
) -> tuple[dict[str, NDArray[Any]], tuple[QnnOp, ...]]:
    for file in sorted(request.file.parent.iterdir()):
        if file != request.file and file.is_file():
            link_or_copy(file, Path(file.name))
    Path(_MODEL).write_bytes(part.SerializeToString())
    trace = Path("trace")
    trace.mkdir()
    options = compile_options(request.soc, float_graph=request.float_graph, trace_folder=trace)
    names = [value.name for value in part.graph.output]
    try:
        compiling_session(_MODEL, _WRAPPER, options)
        if not os.path.exists(_WRAPPER):
            raise ProbeFailed("the compiler left no context binary", remedy="try another bucket")
        session = loading_session(_WRAPPER, request.soc.soc_id)
        needed = {value.name: feeds[value.name] for value in session.get_inputs()}
        arrays = session.run(names, needed)
    except ORT_ERRORS as error:
        raise ProbeFailed(" ".join(str(error).split())[:300], remedy="try --bisect, or another bucket") from None
    text = (trace / TRACE_FILE).read_text(encoding="utf-8") if (trace / TRACE_FILE).exists() else ""
    ops = qnn_ops(text, {node.name for node in part.graph.node})
    return dict(zip(names, arrays, strict=True)), ops


def _measured(name: str, truth: NDArray[Any], found: NDArray[Any], threshold: float) -> Measured:
    compared = compare_sample(name, truth, found)
    wrong = fault(compared, threshold)
    spread: tuple[Spread, ...] = spreads(truth, found) if wrong and truth.dtype.kind == "f" else ()
    return Measured(
        tensor=name,
        shape=tuple(int(size) for size in truth.shape),
        cosine=compared.cosine,
        gain_error=compared.gain_error,
        max_abs=compared.max_abs,
        peak=compared.peak,
        saturated=sum(plateau.elements for plateau in compared.plateaus if not plateau.log_floor),
        not_finite=compared.htp_nonfinite,
        wrong=wrong,
        spread=spread,
    )
