"""How far an exported file's tensor is from the module's, and when that is too far. Pure; needs NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A cosine of 0.999999 is an error of 0.14 % of the norm. Measured on seven models of 0.01 to 23 M parameters (torch
# 2.13, ONNX Runtime 1.32): cosines of 1 - 1e-11 or better, no element off by more than 1e-5. The bound on single
# elements finds what a cosine hides: one wrong channel, a border, a slightly other formula.
COSINE = 0.999999
RELATIVE = 1e-4  # of the largest element
ABSOLUTE = 1e-6
# The file may be this many times as far from the results in double precision as the module is itself.
_AS_FAR = 4.0

_Array = NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """One tensor of one sample. `cosine` is None for integers and booleans, `where` the element that is worst off.

    `max_abs` and `peak` (the module's largest element) are in the tensor's own unit. `other` says in words that the
    two cannot be compared: another shape, another kind of number.
    """

    cosine: float | None
    max_abs: float
    peak: float
    where: tuple[int, ...] | None
    other: str | None = None

    @property
    def passes(self) -> bool:
        """Whether this is what two float32 programs of the same network may differ by."""
        if self.other is not None:
            return False
        if self.cosine is None:
            return self.max_abs == 0
        close = self.cosine >= COSINE and self.max_abs <= RELATIVE * self.peak + ABSOLUTE
        return close or self.max_abs <= ABSOLUTE

    def __str__(self) -> str:
        if self.other is not None:
            return self.other
        cosine = "" if self.cosine is None else f"cosine {self.cosine:.7f}, "
        return f"{cosine}off by {self.max_abs:.3g} at {list(self.where or ())} (largest element {self.peak:.3g})"


def difference(module: _Array, exported: _Array) -> Difference:
    """Compare a tensor of the file with the module's. What is not finite in both, alike, is equal."""
    if module.shape != exported.shape:
        return _other(f"shape {list(exported.shape)} instead of {list(module.shape)}")
    if module.dtype.kind != exported.dtype.kind:
        return _other(f"dtype {exported.dtype} instead of {module.dtype}")
    if module.dtype.kind != "f":
        unequal = module != exported
        where = _first(unequal)
        off = 0.0 if where is None else abs(float(exported[where]) - float(module[where]))
        return Difference(None, off, float(np.abs(module.astype(np.float64)).max(initial=0.0)), where)
    first, second = module.astype(np.float64).ravel(), exported.astype(np.float64).ravel()
    finite = np.isfinite(first) & np.isfinite(second)
    alike = finite | (first == second) | (np.isnan(first) & np.isnan(second))
    if not alike.all():
        where = _first(~alike.reshape(module.shape))
        return _other(f"{exported[where]} instead of {module[where]} at {list(where or ())}")
    first, second = np.where(finite, first, 0.0), np.where(finite, second, 0.0)
    distance = np.abs(second - first)
    worst = int(distance.argmax()) if distance.size else None
    return Difference(
        cosine=_cosine(first, second),
        max_abs=0.0 if worst is None else float(distance[worst]),
        peak=float(np.abs(first).max(initial=0.0)),
        where=None if worst is None else tuple(int(step) for step in np.unravel_index(worst, module.shape)),
    )


def excused(module: _Array, exported: _Array, double: _Array) -> bool:
    """Whether the file is as near to the module's results in double precision as the module in float is.

    A network that amplifies rounding differs between any two correct programs; that is no fault of the exporter.
    """
    if not module.shape == exported.shape == double.shape or module.dtype.kind != exported.dtype.kind:
        return False
    if module.dtype.kind != "f":
        return bool((exported == module)[module == double].all())
    truth = double.astype(np.float64)
    own, its = (np.abs(array.astype(np.float64) - truth) for array in (module, exported))
    if not (np.isfinite(own).all() and np.isfinite(its).all()):
        return False
    return float(its.max(initial=0.0)) <= _AS_FAR * float(own.max(initial=0.0)) + ABSOLUTE


def _other(words: str) -> Difference:
    return Difference(None, math.inf, 0.0, None, words)


def _first(where: NDArray[np.bool_]) -> tuple[int, ...] | None:
    found = np.argwhere(where)
    return tuple(int(step) for step in found[0]) if len(found) else None


def _cosine(first: _Array, second: _Array) -> float:
    """1 for two tensors of nothing but zeros, 0 where only one is. Scaled first, so that no square leaves float64."""
    scale = max(float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0)))
    if scale == 0:
        return 1.0
    first, second = first / scale, second / scale
    norms = float(np.linalg.norm(first)) * float(np.linalg.norm(second))
    return float(first @ second) / norms if norms else 0.0
