"""Measures one output of one sample: HTP's tensor against the float model's. Runs in child processes.

Everything is summed in float64 over pieces of a fixed size, so an output of 100 MB needs about 10 MB beside it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qnn.verify.comparison import TIES, Kind, OutputComparison, RowAgreement, Rows, SampleMeasure, Worst, merge
from qnn.verify.saturation import find_plateaus

__all__ = ["compare_sample", "merge"]

_CHUNK = 1 << 18
_CLASSES = 3  # a last axis this long can hold class scores
_KINDS = {"f": Kind.FLOAT, "i": Kind.INTEGER, "u": Kind.INTEGER, "b": Kind.BOOLEAN}

_Array = NDArray[Any]
_Doubles = NDArray[np.float64]


def compare_sample(name: str, reference: _Array, htp: _Array) -> OutputComparison:
    """Compare one output of one sample; `merge` makes one comparison of several.

    Both arrays are of any numeric or boolean dtype and any rank. A difference in dtype or shape is reported, not
    raised. Raises TypeError for other dtypes (strings, objects), which no context binary has.
    """
    kind = _KINDS.get(reference.dtype.kind)
    if kind is None:
        raise TypeError(f"output {name} has dtype {reference.dtype}, which cannot be compared")
    comparable = reference.shape == htp.shape and reference.dtype == htp.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        measured = _measure(kind, reference, htp) if comparable else _NOTHING
    return OutputComparison(
        name=name,
        kind=kind,
        dtype=str(reference.dtype),
        htp_dtype=str(htp.dtype),
        shape=tuple(reference.shape),
        htp_shape=tuple(htp.shape),
        samples=(measured.sample,) if comparable else (),
        elements=htp.size if comparable else 0,
        equal=measured.equal,
        max_abs=measured.max_abs,
        worst=measured.worst,
        reference_min=measured.ranges.reference_min,
        reference_max=measured.ranges.reference_max,
        reference_nonfinite=measured.ranges.reference_nonfinite,
        htp_nonfinite=measured.ranges.htp_nonfinite,
        plateaus=find_plateaus(reference, htp) if comparable else (),
    )


@dataclass(frozen=True)
class _Ranges:
    """Over the elements that are finite on both sides."""

    reference_min: float = 0.0
    reference_max: float = 0.0
    htp_peak: float = 0.0
    reference_nonfinite: int = 0
    htp_nonfinite: int = 0

    @property
    def reference_peak(self) -> float:
        return max(abs(self.reference_min), abs(self.reference_max))


@dataclass(frozen=True)
class _Measured:
    ranges: _Ranges
    sample: SampleMeasure
    equal: int = 0
    max_abs: float = 0.0
    worst: Worst | None = None


_NOTHING = _Measured(_Ranges(), SampleMeasure(0.0, 1.0, 0.0))


def _measure(kind: Kind, reference: _Array, htp: _Array) -> _Measured:
    flat_reference, flat_htp = reference.reshape(-1), htp.reshape(-1)
    ranges = _ranges(flat_reference, flat_htp)
    has_classes = kind is Kind.FLOAT and reference.ndim > 0 and reference.shape[-1] >= _CLASSES and htp.size > 0
    rows = _rows(reference, htp, ranges.reference_peak) if has_classes else None
    max_abs, at = _largest_error(flat_reference, flat_htp)
    worst = None
    if at is not None:
        index = tuple(int(i) for i in np.unravel_index(at, reference.shape)) if reference.ndim else ()
        worst = Worst(0, index, float(flat_reference[at]), float(flat_htp[at]))
    return _Measured(
        ranges=ranges,
        sample=SampleMeasure(*_direction(flat_reference, flat_htp, ranges), ranges.reference_peak, rows),
        equal=_equal(flat_reference, flat_htp),
        max_abs=max_abs,
        worst=worst,
    )


def _pieces(reference: _Array, htp: _Array) -> Iterator[tuple[int, _Doubles, _Doubles]]:
    """Start, reference and HTP values of each piece, in float64; what is not finite on a side is NaN on both."""
    for start in range(0, htp.size, _CHUNK):
        truth = reference[start : start + _CHUNK].astype(np.float64)
        found = htp[start : start + _CHUNK].astype(np.float64)
        if htp.dtype.kind == "f":
            bad = ~(np.isfinite(truth) & np.isfinite(found))
            if bad.any():
                truth[bad] = found[bad] = np.nan
        yield start, truth, found


def _equal(reference: _Array, htp: _Array) -> int:
    """Elements equal in their own dtype (int64 does not fit float64)."""
    pieces = range(0, htp.size, _CHUNK)
    return sum(int((reference[at : at + _CHUNK] == htp[at : at + _CHUNK]).sum()) for at in pieces)


def _ranges(reference: _Array, htp: _Array) -> _Ranges:
    lowest, highest, htp_peak = math.inf, -math.inf, 0.0
    for _, truth, found in _pieces(reference, htp):
        lowest = min(lowest, float(np.fmin.reduce(truth)))
        highest = max(highest, float(np.fmax.reduce(truth)))
        htp_peak = max(htp_peak, float(np.fmax.reduce(np.abs(found))))
    some = lowest <= highest  # False when empty, or when nothing is finite
    return _Ranges(
        reference_min=lowest if some else 0.0,
        reference_max=highest if some else 0.0,
        htp_peak=htp_peak,
        reference_nonfinite=_nonfinite(reference),
        htp_nonfinite=_nonfinite(htp),
    )


def _nonfinite(values: _Array) -> int:
    if values.dtype.kind != "f":
        return 0
    return sum(int((~np.isfinite(values[at : at + _CHUNK])).sum()) for at in range(0, values.size, _CHUNK))


def _direction(reference: _Array, htp: _Array, ranges: _Ranges) -> tuple[float, float]:
    """Cosine and gain error. Each side is divided by its own peak first, so nothing overflows or vanishes."""
    truth_peak, htp_peak = ranges.reference_peak, ranges.htp_peak
    if truth_peak == 0.0 or htp_peak == 0.0:
        same = truth_peak == htp_peak
        return (1.0, 0.0) if same else (0.0, 1.0)
    both = truths = founds = 0.0
    for _, truth, found in _pieces(reference, htp):
        truth_part = np.nan_to_num(truth, copy=False) / truth_peak
        found_part = np.nan_to_num(found, copy=False) / htp_peak
        # Not `@`: BLAS sums in another order on another number of cores.
        both += float(np.add.reduce(truth_part * found_part))
        truths += float(np.add.reduce(truth_part * truth_part))
        founds += float(np.add.reduce(found_part * found_part))
    cosine = max(-1.0, min(1.0, both / math.sqrt(truths * founds)))
    truth_norm, htp_norm = truth_peak * math.sqrt(truths), htp_peak * math.sqrt(founds)
    gain_error = 1.0 - min(truth_norm, htp_norm) / max(truth_norm, htp_norm)
    return cosine, gain_error


def _largest_error(reference: _Array, htp: _Array) -> tuple[float, int | None]:
    """The largest |HTP - reference| and its flat index; (0.0, None) where nothing differs."""
    largest, at = 0.0, None
    for start, truth, found in _pieces(reference, htp):
        error = np.nan_to_num(np.abs(found - truth), copy=False)
        index = int(error.argmax())
        if error[index] > largest:
            largest, at = float(error[index]), start + index
    return min(largest, sys.float_info.max), at


def _rows(reference: _Array, htp: _Array, peak: float) -> Rows:
    classes = reference.shape[-1]
    truths, founds = reference.reshape(-1, classes), htp.reshape(-1, classes)
    step = max(1, _CHUNK // classes)
    gaps, margins = [], []
    for start in range(0, len(truths), step):
        truth = np.nan_to_num(truths[start : start + step].astype(np.float64))
        found = np.nan_to_num(founds[start : start + step].astype(np.float64))
        top = np.partition(truth, classes - 2, axis=1)[:, -2:]
        chosen = np.take_along_axis(truth, found.argmax(axis=1)[:, None], axis=1)[:, 0]
        gaps.append(top[:, 1] - top[:, 0])
        # A choice of an equal value is no disagreement: which of two equals comes first means nothing.
        margins.append(top[:, 1] - chosen)
    gap, margin = np.concatenate(gaps), np.concatenate(margins)
    wrong = margin[margin > 0]
    return Rows(
        rows=len(truths),
        disagreeing=len(wrong),
        margin_min=float(wrong.min()) if len(wrong) else 0.0,
        margin_max=float(wrong.max()) if len(wrong) else 0.0,
        agreements=tuple(
            RowAgreement(tie, int(((gap > tie * peak) | (margin > tie * peak)).sum()), int((margin > tie * peak).sum()))
            for tie in TIES
        ),
    )
