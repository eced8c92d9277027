"""How measurements read in a sentence."""

from __future__ import annotations

from qnn.verify.comparison import Kind, OutputComparison, Plateau, RowAgreement

_INT32_MAX = 2**31 - 1


def number(value: float) -> str:
    """Six significant digits at most: 0.998871, 131008, 3.4e+38."""
    return f"{value:.6g}"


def percent(share: float) -> str:
    """As a percentage with three significant digits: 4.47 %."""
    return f"{100 * share:.3g} %"


def share_of(share: float) -> str:
    """A share of something named next: "46.7 % of", and for large ones "131008 times"."""
    return f"{percent(share)} of" if share < 10 else f"{number(share)} times"


def describe_error(comparison: OutputComparison) -> str:
    """The largest error and where it is."""
    worst = comparison.worst
    if worst is None:
        return number(comparison.max_abs)
    place = f" at {list(worst.index)}" if worst.index else ""
    sample = f" of sample {worst.sample}" if len(comparison.samples) > 1 else ""
    show = number if comparison.kind is Kind.FLOAT else _whole
    return f"{show(comparison.max_abs)}{place}{sample} (float {show(worst.reference)}, HTP {show(worst.htp)})"


def describe_plateau(plateau: Plateau, elements: int) -> str:
    """What HTP answers, what the float model says there, and what that means."""
    low, high = number(plateau.reference_min), number(plateau.reference_max)
    truth = f"the float model says {low}" + (f" to {high}" if low != high else "")
    head = f"HTP answers {number(plateau.value)} at {plateau.elements} of {elements} elements where {truth}"
    if plateau.log_floor:
        return f"{head}: the floor of a logarithm, whose argument fp16 rounds to zero"
    if plateau.beyond_fp16:
        return f"{head}: {plateau.beyond_fp16} of them beyond fp16's 65504"
    return f"{head}: a value inside the graph overflows fp16 or is not a number"


def describe_agreement(agreement: RowAgreement, comparison: OutputComparison) -> str:
    """How many rows have another best element, ties left out."""
    margin = number(comparison.rows.margin_max) if comparison.rows is not None else "0"
    return (
        f"the arg max differs in {agreement.disagreeing} of {agreement.decided} decided rows, "
        f"by up to {margin} in the float model"
    )


def describe_unequal(comparison: OutputComparison) -> str:
    """How many integers or booleans differ, and the farthest."""
    unequal = comparison.elements - comparison.equal
    count = f"{unequal} of {comparison.elements} {comparison.kind} elements"
    sentence = f"{count} differ, the farthest by {describe_error(comparison)}"
    if max(abs(comparison.reference_min), comparison.reference_max) > _INT32_MAX:
        sentence += "; HTP has no integers beyond 32 bits"
    return sentence


def _whole(value: float) -> str:
    return str(int(value))
