"""Numbers of a comparison: right against a naive computation, never NaN, and independent of how samples are merged."""

import json
import math
from functools import reduce
from typing import Any

import numpy as np
import pytest
from cattrs import structure, unstructure
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from qnn.verify import compare
from qnn.verify.compare import compare_sample, merge
from qnn.verify.comparison import Kind, OutputComparison, RowAgreement

Floats = NDArray[np.float32]
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    dtype = draw(st.sampled_from(["float16", "float32", "float64", "int8", "int64", "uint8", "bool"]))
    shape = draw(SHAPES)
    return draw(arrays.arrays(dtype, shape)), draw(arrays.arrays(dtype, shape))


@given(pairs())
def test_nothing_measured_is_ever_nan(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    compared = compare_sample("y", *pair)
    for value in (compared.cosine, compared.gain_error, compared.max_abs, compared.exact):
        assert math.isfinite(value)
    assert not math.isnan(compared.max_rel)
    assert -1 <= compared.cosine <= 1
    assert 0 <= compared.gain_error <= 1
    assert compared.elements == pair[0].size


@given(st.integers(0, 2**32), st.floats(1e-3, 1e3), st.floats(1e-6, 10))
def test_numbers_equal_a_naive_computation(seed: int, scale: float, noise: float) -> None:
    random = np.random.default_rng(seed)
    reference = (random.standard_normal((3, 7)) * scale).astype(np.float32)
    htp = (reference + random.standard_normal((3, 7)) * scale * noise).astype(np.float32)
    compared = compare_sample("y", reference, htp)
    r, h = reference.astype(float).ravel(), htp.astype(float).ravel()
    r_norm, h_norm = np.linalg.norm(r), np.linalg.norm(h)
    assert compared.cosine == pytest.approx(r @ h / (r_norm * h_norm))
    assert compared.gain_error == pytest.approx(1 - min(r_norm, h_norm) / max(r_norm, h_norm))
    assert compared.max_abs == np.abs(r - h).max()
    assert compared.max_rel == pytest.approx(np.abs(r - h).max() / np.abs(r).max())
    assert (compared.reference_min, compared.reference_max) == (r.min(), r.max())
    assert compared.worst is not None
    at = compared.worst.index
    assert abs(float(reference[at]) - float(htp[at])) == compared.max_abs
    assert (compared.worst.reference, compared.worst.htp) == (reference[at], htp[at])


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    reference = random.standard_normal((11, 9)).astype(np.float32)
    htp = reference + np.float32(0.001)
    htp[10, 8] += 2  # in the last, partial piece
    htp[7, 0] = np.nan
    whole = compare_sample("y", reference, htp)
    monkeypatch.setattr(compare, "_CHUNK", 10)
    pieced = compare_sample("y", reference, htp)
    assert pieced.worst == whole.worst
    assert pieced.worst is not None
    assert pieced.worst.index == (10, 8)
    assert pieced.htp_nonfinite == whole.htp_nonfinite == 1
    assert pieced.cosine == pytest.approx(whole.cosine, abs=1e-12)
    assert pieced.rows == whole.rows


@pytest.mark.parametrize(
    ("reference", "htp", "cosine", "gain_error"),
    [
        ([0, 0], [0, 0], 1.0, 0.0),
        ([0, 0], [0, 1], 0.0, 1.0),
        ([0, 1], [0, 0], 0.0, 1.0),
        ([1, 2], [2, 4], 1.0, 0.5),
        ([1, 2], [-1, -2], -1.0, 0.0),
        ([1e300, 1e300], [1e300, 1e300], 1.0, 0.0),
        ([1e-300, 0], [1e-300, 0], 1.0, 0.0),
    ],
)
def test_cosine_and_gain_at_the_edges(
    reference: list[float], htp: list[float], cosine: float, gain_error: float
) -> None:
    compared = compare_sample("y", np.array(reference, float), np.array(htp, float))
    assert compared.cosine == pytest.approx(cosine)
    assert compared.gain_error == pytest.approx(gain_error)


def test_max_rel_of_a_zero_reference_is_finite() -> None:
    compared = compare_sample("y", np.zeros(8, np.float32), np.full(8, 2.0**-14, np.float32))
    assert compared.max_rel == 1.0
    assert compared.negligible


def test_integers_are_compared_as_integers() -> None:
    reference = np.array([2**53, 2**53 + 1, -1], np.int64)
    htp = np.array([2**53, 2**53, -1], np.int64)  # equal as float64
    compared = compare_sample("ids", reference, htp)
    assert compared.kind is Kind.INTEGER
    assert compared.equal == 2
    assert compared.exact == pytest.approx(2 / 3)
    assert compared.rows is None


def test_unsigned_differences_do_not_wrap() -> None:
    compared = compare_sample("y", np.array([3], np.uint8), np.array([5], np.uint8))
    assert compared.max_abs == 2


def test_booleans() -> None:
    compared = compare_sample("mask", np.array([True, False, True]), np.array([True, True, True]))
    assert compared.kind is Kind.BOOLEAN
    assert (compared.equal, compared.elements) == (2, 3)


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    reference = np.array([1, 2, np.inf, np.nan, 5], np.float32)
    htp = np.array([1, np.nan, np.inf, 4, 5.5], np.float32)
    compared = compare_sample("y", reference, htp)
    assert (compared.reference_nonfinite, compared.htp_nonfinite) == (2, 2)
    assert (compared.reference_min, compared.reference_max, compared.max_abs) == (1, 5, 0.5)
    assert compared.cosine == pytest.approx((1 + 5 * 5.5) / (math.hypot(1, 5) * math.hypot(1, 5.5)))


def test_scalars_and_empty_tensors() -> None:
    scalar = compare_sample("y", np.array(2.0, np.float32), np.array(2.5, np.float32))
    assert scalar.worst is not None
    assert (scalar.shape, scalar.size, scalar.worst.index, scalar.max_abs) == ((), 1, (), 0.5)
    empty = compare_sample("y", np.zeros((2, 0), np.float32), np.zeros((2, 0), np.float32))
    assert (empty.size, empty.elements, empty.exact, empty.cosine, empty.worst) == (0, 0, 1.0, 1.0, None)


@pytest.mark.parametrize("htp", [np.zeros((3, 2), np.float32), np.zeros((2, 3), np.float16), np.zeros(6, np.float32)])
def test_another_shape_or_dtype_is_reported_and_compares_as_nothing(htp: NDArray[Any]) -> None:
    good = compare_sample("y", np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
    bad = compare_sample("y", np.ones((2, 3), np.float32), htp)
    assert not bad.comparable
    assert (bad.cosine, bad.elements, bad.htp_shape, bad.htp_dtype) == (0.0, 0, htp.shape, str(htp.dtype))
    assert merge(good, bad) == merge(bad, good) == bad


def test_strings_are_refused() -> None:
    with pytest.raises(TypeError, match="output y has dtype"):
        compare_sample("y", np.array(["a"]), np.array(["a"]))


def test_rows_tell_ties_from_wrong_answers() -> None:
    reference = np.array(
        [
            [1.0, 0.2, 0.1, 0.0],  # kept
            [0.500, 0.503, 0.1, 0.0],  # swapped, 0.3 % of the peak apart: a tie at every level
            [0.50, 0.53, 0.1, 0.0],  # swapped, 3 % apart: a tie at 5 % and 10 %
            [0.50, 0.50, 0.1, 0.0],  # equals: which comes first means nothing, but HTP chose the third
        ],
        np.float32,
    )
    htp = reference.copy()
    htp[1, 0], htp[2, 0], htp[3, 2] = 0.6, 0.6, 0.7
    rows = compare_sample("y", reference, htp).rows
    assert rows is not None
    assert (rows.rows, rows.disagreeing) == (4, 3)
    assert rows.margin_min == pytest.approx(0.003, abs=1e-6)
    assert rows.margin_max == pytest.approx(0.4, abs=1e-6)
    assert rows.agreements == (RowAgreement(0.01, 3, 2), RowAgreement(0.05, 2, 1), RowAgreement(0.1, 2, 1))
    assert rows.agreements[0].share == pytest.approx(1 / 3)


def test_choosing_the_other_of_two_equals_is_no_disagreement() -> None:
    reference = np.array([[0.5, 0.5, 0.1]], np.float32)
    rows = compare_sample("y", reference, reference + np.array([0, 0.01, 0], np.float32)).rows
    assert rows is not None
    assert (rows.disagreeing, rows.agreements[0]) == (0, RowAgreement(0.01, 0, 0))
    assert rows.agreements[0].share == 1.0


@pytest.mark.parametrize(("shape", "has_rows"), [((4, 2), False), ((4, 3), True), ((3,), True), ((), False)])
def test_only_a_class_like_last_axis_has_rows(shape: tuple[int, ...], has_rows: bool) -> None:
    zeros = np.zeros(shape, np.float32)
    assert (compare_sample("y", zeros, zeros).rows is not None) == has_rows


def test_a_sample_without_signal_does_not_decide_the_cosine_or_the_rows() -> None:
    """PP-OCRv4's detector on a page without text: 0.0005 at most, cosine 0.85, harmless."""
    strong = np.array([1, 0.5, 0, 0.9], np.float32)
    weak = np.array([0.0005, 0, 0.0001, 0], np.float32)
    loud = compare_sample("y", strong, strong)
    silent = compare_sample("y", weak, weak[::-1].copy())
    assert silent.cosine == pytest.approx(0.0)
    for both in (merge(loud, silent), merge(silent, loud)):
        assert both.cosine == pytest.approx(1.0)
        assert both.gain_error == pytest.approx(0.0)
        assert both.rows == loud.rows
        assert both.max_rel == pytest.approx(0.0005)  # of the full scale of both
    assert merge(silent, silent).cosine == silent.cosine


def test_the_worst_of_several_samples_keeps_its_number() -> None:
    samples = [np.full(4, value, np.float32) for value in (1, 2, 3)]
    errors = (0.1, 0.4, 0.2)
    compared = reduce(merge, (compare_sample("y", s, s + np.float32(e)) for s, e in zip(samples, errors, strict=True)))
    assert compared.worst is not None
    assert (compared.worst.sample, compared.worst.reference) == (1, 2)
    assert compared.max_abs == pytest.approx(0.4)
    assert (len(compared.samples), compared.elements) == (3, 12)


@given(st.lists(st.tuples(st.integers(0, 99), st.floats(0, 2)), min_size=3, max_size=3))
def test_merging_is_associative(parts: list[tuple[int, float]]) -> None:
    def part(seed: int, noise: float) -> OutputComparison:
        random = np.random.default_rng(seed)
        reference = (random.standard_normal((2, 4)) * 10 ** (seed % 7 - 5)).astype(np.float32)
        htp = reference + (random.standard_normal((2, 4)) * noise).astype(np.float32)
        htp[0, 0] = 131008 if seed % 3 == 0 else htp[0, 0]
        return compare_sample("y", reference, htp)

    a, b, c = (part(*given_part) for given_part in parts)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))


def test_merging_two_outputs_is_a_mistake() -> None:
    zeros = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="a and b"):
        merge(compare_sample("a", zeros, zeros), compare_sample("b", zeros, zeros))


@given(pairs())
def test_a_comparison_survives_json(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    compared = compare_sample("y", *pair)
    assert structure(json.loads(json.dumps(unstructure(compared))), OutputComparison) == compared
