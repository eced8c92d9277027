"""Finds the finite numbers with which HTP answers overflow and "not a number".

Measured on the emulator of QAIRT 2.51.0 (onnxruntime-qnn 2.7.0), chips SM8650 (soc 57, v75), SM8750 (69, v79),
SM8850 (87, v81) and SA8295 (39, v68), fp16 graphs with float32 inputs and outputs. HTP's 16-bit floats have no infinity
and no NaN: the bit patterns that IEEE keeps for them are the numbers 65536 (0x7C00) to 131008 (0x7FFF), so

* a right value may lie between 65504 and 131008 (257² comes out as 66048); from there on everything is ±131008: sums,
  products, reductions, Exp, casts of larger float32 inputs, and NaN inputs (+131008);
* Conv, MatMul and Relu stop at ±65536 instead (on v81 Relu stops at 131008, and answers -131008 for inputs below
  -65536, where 0 is right); Reciprocal, and Div by what is 0 in fp16, stop at ±65504; so does what is halved later;
* Exp of -90 to -120 is -131008 and of -1000 +131008, where 0 is right; Exp of 12 to 89 is 131008 and of 100 is 0;
  Sqrt of a negative number is -131008; 0/0 is 0;
* Log of 0, and of what fp16 rounds to 0 (below 3e-8), is -7.625, after log10 -3.3117 and in decibels -33.12. Log itself
  is right down to 6e-8 (-16.64). Log of more than 65504 runs from -0.63 to 0: no plateau, left to the other gates;
* a float32 output holds these numbers one part in 10^7 off (131008.0078, -7.6250005);
* a float16 output holds the bit patterns, which NumPy reads as NaN and infinity even where the value is right (66000);
  an int32 output holds 131008.

A plateau that goes on through further operations (65536 times a weight) is an ordinary wrong number at the output, and
the gates on cosine and error find it. ±131072 was looked for and never seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qnn.verify.comparison import Plateau

FP16_MAX = 65504.0
OVERFLOWS = (65504.0, 65536.0, 131008.0)
# ln, log10, log2, and both decibels (10 and 20 log10): the factors of what usually follows a Log.
LOG_FLOORS = tuple(-7.625 * factor for factor in (1.0, 0.4342945, 1.442695, 4.342945, 8.685890))
# An overflow is only seen where the reference is further away than this share of the plateau.
_FAR = 0.05
# Log is right to twice the floor's depth, so a floor shows only where the reference is deeper than that; one such
# element may be chance, three at exactly the same number are not.
_FLOOR_DEPTH = 2.0
_FLOOR_ELEMENTS = 3
_FLOAT32_SLACK = 2.0**-20
_FP16_ULP = 2.0**-10
_CHUNK = 1 << 18
_Doubles = NDArray[np.float64]


def find_plateaus(reference: NDArray[Any], htp: NDArray[Any]) -> tuple[Plateau, ...]:
    """The plateaus of one sample of an output, sorted by value.

    Both arrays have the same shape and any numeric dtype. Reads them in pieces; needs about 10 MB beside them.
    """
    if htp.size == 0 or htp.dtype.kind not in "fiu":
        return ()
    flat_reference, flat_htp = reference.reshape(-1), _as_htp_means(htp).reshape(-1)
    highest, lowest = float(np.fmax.reduce(flat_htp)), float(np.fmin.reduce(flat_htp))
    near = _FLOAT32_SLACK * FP16_MAX
    overflows = [sign * value for value in OVERFLOWS for sign in (-1.0, 1.0)]
    overflows = [value for value in overflows if lowest - near <= value <= highest + near]
    found = [_overflow(flat_reference, flat_htp, value) for value in overflows]
    if htp.dtype.kind == "f":
        floors = [value for value in LOG_FLOORS if lowest <= value * (1 - _FP16_ULP)]
        found += [_log_floor(flat_reference, flat_htp, value) for value in floors]
    return tuple(sorted((plateau for plateau in found if plateau is not None), key=lambda plateau: plateau.value))


def _overflow(reference: NDArray[Any], htp: NDArray[Any], value: float) -> Plateau | None:
    return _gather(reference, htp, value, tolerance=abs(value) * _FLOAT32_SLACK, log_floor=False)


def _log_floor(reference: NDArray[Any], htp: NDArray[Any], value: float) -> Plateau | None:
    plateau = _gather(reference, htp, value, tolerance=abs(value) * _FP16_ULP, log_floor=True)
    return plateau if plateau is not None and plateau.elements >= _FLOOR_ELEMENTS else None


def _gather(
    reference: NDArray[Any], htp: NDArray[Any], value: float, *, tolerance: float, log_floor: bool
) -> Plateau | None:
    elements = beyond = 0
    lowest, highest = np.inf, -np.inf
    for start in range(0, htp.size, _CHUNK):
        there = np.flatnonzero(np.abs(htp[start : start + _CHUNK].astype(np.float64) - value) <= tolerance)
        truth: _Doubles = reference[start : start + _CHUNK][there].astype(np.float64)
        far = truth < value * _FLOOR_DEPTH if log_floor else np.abs(truth - value) > abs(value) * _FAR
        truth = truth[far & np.isfinite(truth)]
        if truth.size:
            elements += truth.size
            beyond += int((np.abs(truth) > FP16_MAX).sum())
            lowest, highest = min(lowest, float(truth.min())), max(highest, float(truth.max()))
    return Plateau(value, elements, beyond, lowest, highest, log_floor) if elements else None


def _as_htp_means(htp: NDArray[Any]) -> NDArray[Any]:
    """A float16 tensor as HTP means it: infinities and NaNs are the numbers from 65536 to 131008."""
    if htp.dtype != np.float16:
        return htp
    bits = htp.view(np.uint16)
    special = (bits & 0x7C00) == 0x7C00
    if not special.any():
        return htp
    meant = htp.astype(np.float32)
    patterns = bits[special]
    signs = np.where(patterns & 0x8000, np.float32(-1), np.float32(1))
    meant[special] = signs * (np.float32(65536) + (patterns & 0x3FF).astype(np.float32) * np.float32(64))
    return meant
