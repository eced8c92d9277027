"""Whether a tensor on the NPU agrees with the CPU's, in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qnn.verify.comparison import Kind, OutputComparison, Plateau

# Where the CPU has next to nothing, an NPU that has more than this has another number.
_NOT_NOTHING = 1e-3
# Where a quantized graph is cut, tensors are integers that stand for floats: one step more or less is rounding.
_CODES = frozenset({"int8", "int16", "uint8", "uint16"})


def fault(found: OutputComparison, threshold: float) -> str:
    """Why the tensor is wrong; empty where it is right, or both sides are so small that fp16 has no digits.

    `threshold` is the least cosine. The largest gain error (a factor that no cosine sees) is the error of the same
    size: an error of a share e of the tensor's norm, at a right angle, makes a cosine of 1 - e²/2.
    """
    if not found.comparable:
        return f"{found.htp_dtype}{list(found.htp_shape)} in place of {found.dtype}{list(found.shape)}"
    if found.htp_nonfinite > found.reference_nonfinite:
        return f"{found.htp_nonfinite} elements are not finite"
    if found.dtype in _CODES:
        off = found.max_rel > math.sqrt(2 * (1 - threshold))
        return f"up to {found.max_abs:.0f} steps off, of {found.peak:.0f}" if off else ""
    if found.kind is not Kind.FLOAT:
        return "" if found.exact >= threshold else f"{found.exact:.2%} of the elements are equal"
    return _float_fault(found, threshold)


def _float_fault(found: OutputComparison, threshold: float) -> str:
    overflows = [plateau for plateau in found.plateaus if not plateau.log_floor]
    if overflows:
        return _overflow(found.elements, overflows)
    if found.negligible:
        return f"up to {found.max_abs:.3g} where the CPU has 0" if found.max_abs > _NOT_NOTHING else ""
    if found.cosine < threshold:
        return f"cosine {found.cosine:.5f}"
    if found.gain_error > math.sqrt(2 * (1 - threshold)):
        return f"its size is off by {found.gain_error:.1%}"
    return ""


def _overflow(elements: int, plateaus: Sequence[Plateau]) -> str:
    count = sum(plateau.elements for plateau in plateaus)
    values = ", ".join(f"{plateau.value:g}" for plateau in plateaus)
    low, high = min(p.reference_min for p in plateaus), max(p.reference_max for p in plateaus)
    span = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    return f"{count} of {elements} elements are {values}, which stands for overflow; the CPU has {span} there"
