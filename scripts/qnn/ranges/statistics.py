"""What is asked of one array of floats, in pieces of bounded size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# fp16 has no number below half of its smallest, 2^-24.
VANISHES = 2.0**-25
_PIECE = 1 << 20

Array = NDArray[Any]


@dataclass(frozen=True)
class Statistics:
    """Of one or more arrays of one tensor; the fields are those of qnn.ranges.facts.TensorRange."""

    minimum: float = math.inf
    maximum: float = -math.inf
    smallest: float = math.inf
    tiny: int = 0
    not_finite: int = 0
    nan: int = 0
    sum: float = 0.0
    cumsum: float = 0.0

    def with_(self, other: Statistics) -> Statistics:
        """Of both together."""
        return Statistics(
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
            min(self.smallest, other.smallest),
            self.tiny + other.tiny,
            self.not_finite + other.not_finite,
            self.nan + other.nan,
            max(self.sum, other.sum),
            max(self.cumsum, other.cumsum),
        )


def measure(array: Array) -> Statistics:
    """The statistics of a float array of any shape; copies at most a few MB at a time."""
    found = Statistics()
    for rows in _pieces(array):
        found = found.with_(_measure(rows))
    return found


def _pieces(array: Array) -> Iterator[Array]:
    """The array as rows along its last axis, a few at a time, as float32 (float64 stays)."""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    step = max(1, _PIECE // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        piece = rows[start : start + step]
        yield piece.astype(np.float32) if piece.dtype == np.float16 else piece


def _measure(rows: Array) -> Statistics:
    if rows.size == 0:
        return Statistics()
    low, high = float(rows.min()), float(rows.max())  # NaN and infinities show here
    finite, not_finite, nan = rows, 0, 0
    if not (math.isfinite(low) and math.isfinite(high)):
        keep = np.isfinite(rows)
        not_finite, nan = int(rows.size - keep.sum()), int(np.isnan(rows).sum())
        finite = np.where(keep, rows, 0)
        low, high = float(finite.min()), float(finite.max())
    magnitudes = np.abs(finite)
    smallest = float(magnitudes.min())
    tiny = 0
    if smallest < VANISHES:
        other = magnitudes[magnitudes > 0]
        smallest = float(other.min()) if other.size else math.inf
        tiny = int((other < VANISHES).sum())
    with np.errstate(over="ignore"):
        running = np.add.accumulate(finite, axis=-1)
        total = float(np.abs(running[:, -1]).max())
        cumulative = float(max(running.max(), -running.min()))
    return Statistics(low, high, smallest, tiny, not_finite, nan, total, cumulative)
