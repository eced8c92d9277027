"""How tests look at a graph's ranges: prepared and measured, as a build does it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import ModelProto

from qnn.model.spec import InputSpec
from qnn.npz import write_npz
from qnn.prepare.pipeline import prepare
from qnn.prepare.request import PrepareRequest
from qnn.ranges.facts import Finding, RangeFacts, load_ranges
from qnn.ranges.job import measure_ranges
from qnn.ranges.request import BUDGET, RangeRequest
from tests.prepare.graphs import Array, saved


def looked_at(made: ModelProto, *samples: Mapping[str, Array], budget: int = BUDGET, **switches: bool) -> RangeFacts:
    """The range run of a graph on samples; switches are rewrites with underscores in their names."""
    inputs = tuple(
        InputSpec(name, array.shape, "int64" if array.dtype == np.int64 else None) for name, array in samples[0].items()
    )
    names = {name.replace("_", "-"): on for name, on in switches.items()}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        prepare(PrepareRequest(saved(made, folder), "net", inputs, {}, folder, rewrites=names))
        files = []
        for number, feeds in enumerate(samples):
            files.append(folder / f"{number:03d}.npz")
            write_npz(files[-1], feeds)
        measure_ranges(RangeRequest("net", folder / "net.onnx", tuple(files), folder, budget))
        return load_ranges(folder)


def found(facts: RangeFacts) -> dict[str, Finding]:
    """Findings by tensor."""
    return {finding.tensor: finding for finding in facts.findings}
