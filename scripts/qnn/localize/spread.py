"""How the error of a tensor lies along its axes: tokens, channels, heads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qnn.localize.facts import Spread

# Indices that are named of an axis, at most.
_NAMED = 4
# Elements looked at; of a larger tensor its error is summed in the dtype's own pieces by NumPy, without a copy.
_CAP = 1 << 26
# An axis is told of when the named indices hold this many times their even share of the error, and most of it.
_UNEVEN = 2.0
_MOST = 0.5


def spreads(truth: NDArray[Any], found: NDArray[Any]) -> tuple[Spread, ...]:
    """The axes along which the error is uneven, the most uneven first; empty for tensors of other shapes or no error.

    Arrays of one shape, floats of any rank; what is not finite on the emulator counts as an error of the peak's size.
    """
    if truth.shape != found.shape or not 0 < truth.size <= _CAP:
        return ()
    peak = float(np.abs(np.nan_to_num(truth.astype(np.float64))).max())
    error = np.nan_to_num(found.astype(np.float64) - truth.astype(np.float64), nan=peak, posinf=peak, neginf=-peak)
    energy = np.square(error)
    total = float(energy.sum())
    if total == 0.0:
        return ()
    found_spreads = [_of_axis(energy, axis, total) for axis in range(truth.ndim) if truth.shape[axis] > 1]
    told = [spread for spread in found_spreads if _is_uneven(spread)]
    return tuple(sorted(told, key=lambda spread: -spread.share * spread.size / len(spread.indices)))


def _of_axis(energy: NDArray[np.float64], axis: int, total: float) -> Spread:
    shares = energy.sum(axis=tuple(other for other in range(energy.ndim) if other != axis)) / total
    order = np.argsort(-shares, kind="stable")
    count = 1
    while count < min(_NAMED, len(shares)) and shares[order[:count]].sum() < 0.9 and shares[order[count]] > 0:
        count += 1
    named = order[:count]
    return Spread(axis, len(shares), tuple(int(index) for index in named), float(shares[named].sum()))


def _is_uneven(spread: Spread) -> bool:
    even = len(spread.indices) / spread.size
    return spread.share >= _MOST and spread.share >= _UNEVEN * even
