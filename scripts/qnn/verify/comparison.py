"""What was measured of one output tensor, and how measurements of several samples become one. Imports no numpy.

The numbers themselves are made in qnn.verify.compare and judged in qnn.verify.gates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

# Smallest normal fp16 number. Below it fp16 has no relative precision left, so direction and ratio mean nothing.
NEGLIGIBLE = 2.0**-14
# A sample whose reference stays below this share of the output's full scale has too little signal for a cosine:
# PP-OCRv4's detector on a page without text answers 0.0005 at most, with a cosine of 0.85 and an error of 0.0003.
WEAK_SHARE = 1 / 128
# Rows whose best two values are nearer than this share of the sample's peak are ties. Which one applies is a matter
# of precision (qnn.verify.gates), which measuring does not know.
TIES = (0.01, 0.05, 0.1)


class Kind(StrEnum):
    """How an output is compared: by size of error, or by equality."""

    FLOAT = "float"
    INTEGER = "integer"
    BOOLEAN = "boolean"


@dataclass(frozen=True)
class Plateau:
    """Elements where HTP sits on a number that stands for overflow or "not a number" while the reference is far away.

    `value` is that number; `beyond_fp16` counts the elements whose reference itself lies outside ±65504;
    `reference_min` and `reference_max` are over these elements; `log_floor` tells a log's floor from an overflow.
    """

    value: float
    elements: int
    beyond_fp16: int
    reference_min: float
    reference_max: float
    log_floor: bool = False


@dataclass(frozen=True)
class Worst:
    """Where the largest error is: 0-based sample and index, and both values there."""

    sample: int
    index: tuple[int, ...]
    reference: float
    htp: float


@dataclass(frozen=True)
class RowAgreement:
    """Agreement of the arg max along the last axis, at one tie share.

    A row is `decided` when the reference's best value leads the next, or the one HTP chose, by more than `tie` times
    the sample's peak. `disagreeing` counts the decided rows where HTP chose an element that far below the best.
    """

    tie: float
    decided: int
    disagreeing: int

    @property
    def share(self) -> float:
        """Agreeing share of the decided rows, 1.0 when there are none."""
        return 1.0 - self.disagreeing / self.decided if self.decided else 1.0


@dataclass(frozen=True)
class Rows:
    """Arg max along the last axis over all rows.

    `disagreeing` counts every row where HTP's choice is another than the reference's; for those, `margin_min` and
    `margin_max` are the smallest and largest distance, in the reference, of its best value to HTP's choice (0.0 when
    there are none): a tiny margin is a tie of the float model, a large one a wrong answer.
    """

    rows: int
    disagreeing: int
    margin_min: float
    margin_max: float
    agreements: tuple[RowAgreement, ...]


@dataclass(frozen=True)
class SampleMeasure:
    """One sample's share of what only counts where the sample has signal.

    `cosine` is -1…1, `gain_error` = 1 - smaller norm / larger norm (0…1), `peak` the largest |reference|. `rows` is
    None where an arg max has no meaning: integers, booleans, a last axis shorter than 3.
    """

    cosine: float
    gain_error: float
    peak: float
    rows: Rows | None = None


@dataclass(frozen=True)
class OutputComparison:
    """One output compared over all samples: `dtype` and `shape` of the reference, and what HTP gave.

    Where HTP's shape or dtype differs nothing can be compared: `elements` is 0 and `samples` empty.
    `elements` counts over all samples; `equal` the elements that are equal as numbers; `max_abs` is the largest
    |HTP - reference|, `worst` its place. Non-finite elements are counted and left out of everything else.
    """

    name: str
    kind: Kind
    dtype: str
    htp_dtype: str
    shape: tuple[int, ...]
    htp_shape: tuple[int, ...]
    samples: tuple[SampleMeasure, ...]
    elements: int
    equal: int
    max_abs: float
    worst: Worst | None
    reference_min: float
    reference_max: float
    reference_nonfinite: int
    htp_nonfinite: int
    plateaus: tuple[Plateau, ...]

    @property
    def comparable(self) -> bool:
        """False where HTP's shape or dtype is another than the reference's."""
        return self.shape == self.htp_shape and self.dtype == self.htp_dtype

    @property
    def size(self) -> int:
        """Elements of the output in one sample."""
        return reduce(lambda product, dim: product * dim, self.shape, 1)

    @property
    def peak(self) -> float:
        """The output's full scale: the largest |reference| over all samples."""
        return max((sample.peak for sample in self.samples), default=0.0)

    @property
    def negligible(self) -> bool:
        """True where the reference is zero as far as fp16 can tell."""
        return self.peak < NEGLIGIBLE

    @property
    def cosine(self) -> float:
        """The worst sample's cosine, 0.0 where nothing could be compared.

        Samples without signal (see WEAK_SHARE) do not count unless there are no others.
        """
        return min((sample.cosine for sample in self._weighty()), default=0.0)

    @property
    def gain_error(self) -> float:
        """The worst sample's gain error: a factor that a cosine cannot see. 0.0 is none, 0.5 a factor of two."""
        return max((sample.gain_error for sample in self._weighty()), default=1.0)

    @property
    def max_rel(self) -> float:
        """`max_abs` as a share of the output's full scale over all samples.

        The full scale, not the element's own value: HTP computes in fp16, where an element that is a small
        difference of large terms has an error of the large terms' size; and not each sample's own peak, so that a
        silent sample's noise is held against what the output can be. Never below the NEGLIGIBLE scale.
        """
        return self.max_abs / max(self.peak, NEGLIGIBLE)

    @property
    def exact(self) -> float:
        """Share of elements equal as numbers, 1.0 for an empty tensor."""
        return self.equal / self.elements if self.elements else 1.0

    @property
    def rows(self) -> Rows | None:
        """Arg max over the rows of all samples with signal, None where it has no meaning."""
        return reduce(_both_rows, (sample.rows for sample in self._weighty()), None)

    @property
    def argmax(self) -> RowAgreement | None:
        """The strictest agreement of `rows`: only near-exact ties are left out. None where it has no meaning."""
        return self.rows.agreements[0] if self.rows is not None else None

    def _weighty(self) -> tuple[SampleMeasure, ...]:
        floor = max(self.peak * WEAK_SHARE, NEGLIGIBLE)
        return tuple(sample for sample in self.samples if sample.peak >= floor) or self.samples


def merge(first: OutputComparison, second: OutputComparison) -> OutputComparison:
    """Both measurements of the same output as one; samples of `second` follow those of `first`. Associative.

    Raises ValueError for comparisons of two different outputs.
    """
    if first.name != second.name:
        raise ValueError(f"cannot merge comparisons of {first.name} and {second.name}")
    if not (first.comparable and second.comparable):
        return second if first.comparable else first
    return OutputComparison(
        name=first.name,
        kind=first.kind,
        dtype=first.dtype,
        htp_dtype=first.htp_dtype,
        shape=first.shape,
        htp_shape=first.htp_shape,
        samples=first.samples + second.samples,
        elements=first.elements + second.elements,
        equal=first.equal + second.equal,
        max_abs=max(first.max_abs, second.max_abs),
        worst=_worst(first, second),
        reference_min=min(first.reference_min, second.reference_min),
        reference_max=max(first.reference_max, second.reference_max),
        reference_nonfinite=first.reference_nonfinite + second.reference_nonfinite,
        htp_nonfinite=first.htp_nonfinite + second.htp_nonfinite,
        plateaus=_pooled(first.plateaus + second.plateaus),
    )


def _worst(first: OutputComparison, second: OutputComparison) -> Worst | None:
    if second.worst is None or (first.worst is not None and first.max_abs >= second.max_abs):
        return first.worst
    found = second.worst
    return Worst(found.sample + len(first.samples), found.index, found.reference, found.htp)


def _both_rows(first: Rows | None, second: Rows | None) -> Rows | None:
    if first is None or second is None:
        return first or second
    margins = [rows.margin_min for rows in (first, second) if rows.disagreeing]
    return Rows(
        rows=first.rows + second.rows,
        disagreeing=first.disagreeing + second.disagreeing,
        margin_min=min(margins, default=0.0),
        margin_max=max(first.margin_max, second.margin_max),
        agreements=tuple(
            RowAgreement(a.tie, a.decided + b.decided, a.disagreeing + b.disagreeing)
            for a, b in zip(first.agreements, second.agreements, strict=True)
        ),
    )


def _pooled(found: tuple[Plateau, ...]) -> tuple[Plateau, ...]:
    merged: dict[tuple[float, bool], Plateau] = {}
    for plateau in found:
        key = (plateau.value, plateau.log_floor)
        known = merged.get(key)
        merged[key] = plateau if known is None else _both_plateaus(known, plateau)
    return tuple(merged[key] for key in sorted(merged))


def _both_plateaus(first: Plateau, second: Plateau) -> Plateau:
    return Plateau(
        first.value,
        first.elements + second.elements,
        first.beyond_fp16 + second.beyond_fp16,
        min(first.reference_min, second.reference_min),
        max(first.reference_max, second.reference_max),
        first.log_floor,
    )
