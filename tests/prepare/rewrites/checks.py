"""How every rewrite is held to its word: the same numbers as the original, and a record of what was done."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from qnn.model.spec import InputSpec
from qnn.prepare.pipeline import prepare
from qnn.prepare.request import PrepareRequest
from tests.prepare.graphs import Array, run, saved

# Largest error as a share of an output's full scale.
RELATIVE = 1e-6


def prepared_with(made: ModelProto, feeds: Mapping[str, Array], **switches: bool) -> tuple[list[str], ModelProto]:
    """(changes of rewrites as text, the prepared model). Switches are names of rewrites with underscores."""
    inputs = tuple(
        InputSpec(name, array.shape, "int64" if array.dtype == np.int64 else None) for name, array in feeds.items()
    )
    names = {name.replace("_", "-"): on for name, on in switches.items()}
    with tempfile.TemporaryDirectory() as folder:
        facts = prepare(PrepareRequest(saved(made, Path(folder)), "net", inputs, {}, Path(folder), rewrites=names))
        after = onnx.load(Path(folder) / "net.onnx")
    onnx.checker.check_model(after, full_check=True)
    return [str(change) for change in facts.changes if "rewritten" in change.kind], after


def assert_rewritten(
    made: ModelProto, feeds: Mapping[str, Array], rewrite: str, *, times: int = 1, within: float = RELATIVE
) -> ModelProto:
    """The rewrite is applied so many times and recorded, and no output moves; switched off, it leaves the graph."""
    switch = {rewrite.replace("-", "_"): True}
    changes, after = prepared_with(made, feeds, **switch)
    mine = [change for change in changes if change.startswith("rewritten") and f": {rewrite}: " in change]
    assert len(mine) == times, changes
    assert_same(made, after, feeds, within)
    off, _ = prepared_with(made, feeds, **dict.fromkeys(switch, False))
    assert not any(f": {rewrite}: " in change for change in off)
    return after


def assert_left(made: ModelProto, feeds: Mapping[str, Array], rewrite: str) -> list[str]:
    """The rewrite changes nothing; returns what it says about that."""
    changes, after = prepared_with(made, feeds, **{rewrite.replace("-", "_"): True})
    assert not [change for change in changes if change.startswith("rewritten") and f": {rewrite}: " in change]
    assert_same(made, after, feeds, RELATIVE)
    return [change for change in changes if f": {rewrite}: " in change]


def assert_same(made: ModelProto, after: ModelProto, feeds: Mapping[str, Array], within: float) -> None:
    """Every output, NaN where it was NaN, within a share of its full scale."""
    for expected, got in zip(run(made, feeds), run(after, feeds), strict=True):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(got, expected)
            continue
        scale = float(np.nanmax(np.abs(expected), initial=0.0)) or 1.0
        np.testing.assert_allclose(
            got.astype(np.float64), expected.astype(np.float64), rtol=0, atol=within * scale, equal_nan=True
        )
