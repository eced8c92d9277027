"""Run one probe on the compiler and the emulator, as it is or prepared. Runs in child processes only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy

from qnn.chips.soc import Soc
from qnn.errors.base import ForgeError
from qnn.faults.probes import FLOAT_PROBES, Array, ProbeGraph
from qnn.faults.probes_integers import INTEGER_PROBES
from qnn.faults.probes_quantized import QUANTIZED_PROBES
from qnn.faults.probes_spatial import SPATIAL_PROBES
from qnn.faults.table import Shown
from qnn.model.spec import InputSpec

PROBES = {**FLOAT_PROBES, **INTEGER_PROBES, **SPATIAL_PROBES, **QUANTIZED_PROBES}
# An output is wrong when an element is off by more than this share of the output's largest magnitude.
_WRONG = 0.02


@dataclass(frozen=True)
class ProbeRequest:
    """Which probe, for which chip, with preparation before it or not. The job works in its current folder."""

    graph: str
    soc: Soc
    prepared: bool


@dataclass(frozen=True)
class Seen:
    """What came of a probe, and in what words."""

    shown: Shown
    detail: str


def run_probe(request: ProbeRequest) -> Seen:
    """Compile, load back, run, and compare with the graph as it is on ONNX Runtime's CPU provider."""
    from qnn.prepare.runtime import load_cpu, run_cpu  # noqa: PLC0415 - a child's imports
    from qnn.toolchains.pip.session import (  # noqa: PLC0415
        ORT_ERRORS,
        compile_options,
        compiling_session,
        loading_session,
    )

    probe = PROBES[request.graph]()
    truth = run_cpu(load_cpu(probe.model.SerializeToString()), None, probe.feeds)
    names = [value.name for value in probe.model.graph.output]
    try:
        _write(probe, Path("probe.onnx"), prepared=request.prepared)
    except ForgeError as error:
        return Seen(Shown.FAILS, f"{error.id} {error.message}")
    float_graph = request.graph not in QUANTIZED_PROBES
    try:
        compiling_session("probe.onnx", "probe_ctx.onnx", compile_options(request.soc, float_graph=float_graph))
        if not os.path.exists("probe_ctx.onnx"):
            return Seen(Shown.FAILS, "no error, and no context binary")
        session = loading_session("probe_ctx.onnx", request.soc.soc_id)
        found = session.run(names, dict(probe.feeds))
    except ORT_ERRORS as error:
        return Seen(Shown.FAILS, str(error).splitlines()[0][:200])
    return compare(dict(zip(names, truth, strict=True)), dict(zip(names, found, strict=True)))


def compare(truth: Mapping[str, Array], found: Mapping[str, Array]) -> Seen:
    """Right or wrong, by the worst output: integers and booleans equal, floats within 2 % of the full scale."""
    worst = Seen(Shown.RIGHT, "equal")
    largest = 0.0
    for name, expected in truth.items():
        got = found[name]
        if got.shape != expected.shape:
            return Seen(Shown.WRONG, f"{name} has shape {list(got.shape)}, not {list(expected.shape)}")
        if expected.dtype.kind in "iub":
            unequal = int((got != expected).sum())
            if unequal:
                return Seen(Shown.WRONG, f"{unequal} of {expected.size} elements of {name} differ")
            continue
        wide = expected.astype(numpy.float64)
        scale = float(numpy.abs(wide).max()) or 1.0
        error = float(numpy.abs(got.astype(numpy.float64) - wide).max()) / scale
        if error >= largest:
            largest = error
            shown = Shown.RIGHT if error <= _WRONG else Shown.WRONG
            worst = Seen(shown, f"{name} is off by {error:.2g} of its full scale")
    return worst


def _write(probe: ProbeGraph, path: Path, *, prepared: bool) -> None:
    """The model file; prepared as a build prepares it, or as it is."""
    from qnn.prepare.load import load  # noqa: PLC0415 - a child's imports
    from qnn.prepare.pipeline import transform  # noqa: PLC0415
    from qnn.prepare.request import PrepareRequest  # noqa: PLC0415
    from qnn.prepare.write import write_model  # noqa: PLC0415

    source = Path("source.onnx")
    source.write_bytes(probe.model.SerializeToString())
    if not prepared:
        path.write_bytes(source.read_bytes())
        return
    inputs = tuple(
        InputSpec(name, array.shape, "int64" if array.dtype == numpy.int64 else None)
        for name, array in probe.feeds.items()
    )
    model, _ = transform(load(source.absolute()), PrepareRequest(source, "probe", inputs, {}, Path()))
    write_model(model, path.stem, path.parent)
