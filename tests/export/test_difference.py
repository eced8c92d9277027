"""How far two tensors are apart, and when that is more than two correct programs of one network can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from qnn.export.difference import ABSOLUTE, RELATIVE, difference, excused

F = np.float32


def array(*values: float) -> np.ndarray:
    return np.array(values, F)


@given(arrays(F, array_shapes(max_dims=3, max_side=5), elements=st.floats(-100, 100, width=32)))
def test_equal_tensors_pass_with_no_distance(tensor: np.ndarray) -> None:
    found = difference(tensor, tensor.copy())
    assert found.passes
    assert found.max_abs == 0
    assert found.cosine == pytest.approx(1)


@given(st.floats(1e-3, 1e3), st.integers(0, 9))
def test_one_element_off_by_more_than_the_bound_fails_though_the_cosine_is_1(scale: float, place: int) -> None:
    tensor = np.full(10_000, scale, F)
    other = tensor.copy()
    other[place] += F(2 * (RELATIVE * scale + ABSOLUTE))
    found = difference(tensor, other)
    assert found.cosine is not None
    assert found.cosine > 0.999999
    assert found.where == (place,)
    assert not found.passes


def test_a_direction_that_is_off_fails_though_no_element_is_far() -> None:
    tensor = np.zeros(10_000, F)
    tensor[0] = 1
    other = tensor + F(0.9e-4)  # each less than the bound, together 0.9 % of the norm
    found = difference(tensor, other)
    assert found.max_abs < RELATIVE + ABSOLUTE
    assert not found.passes


def test_noise_around_zero_passes_whatever_its_direction() -> None:
    found = difference(array(1e-8, -1e-8), array(-1e-8, 1e-8))
    assert found.cosine == pytest.approx(-1)
    assert found.passes


def test_numbers_beyond_float32_squares_have_a_cosine() -> None:
    assert difference(array(3e38, 1e38), array(3e38, 1e38)).cosine == pytest.approx(1)
    assert difference(np.zeros(3, F), np.zeros(3, F)).cosine == 1.0


@pytest.mark.parametrize(
    ("module", "exported", "words"),
    [
        (array(1, 2), array(1, 2, 3), "shape [3] instead of [2]"),
        (array(1), np.array([1], np.int64), "dtype int64 instead of float32"),
        (array(1, np.nan), array(1, 2), "2.0 instead of nan at [1]"),
        (array(np.inf), array(-np.inf), "-inf instead of inf at [0]"),
    ],
)
def test_what_cannot_be_compared_says_why(module: np.ndarray, exported: np.ndarray, words: str) -> None:
    found = difference(module, exported)
    assert not found.passes
    assert str(found) == words


def test_what_is_not_finite_in_both_alike_is_equal() -> None:
    found = difference(array(np.inf, np.nan, -np.inf, 2), array(np.inf, np.nan, -np.inf, 2))
    assert found.passes
    assert found.peak == 2


def test_integers_and_booleans_must_be_equal() -> None:
    found = difference(np.array([[1, 2], [3, 4]]), np.array([[1, 2], [9, 4]]))
    assert (found.cosine, found.max_abs, found.where, found.passes) == (None, 6.0, (1, 0), False)
    assert difference(np.array([True, False]), np.array([True, False])).passes
    assert not difference(np.array([True, False]), np.array([True, True])).passes


def test_words_show_the_numbers_and_the_place() -> None:
    words = str(difference(array(1, 2), array(1, 2.5)))
    assert words == "cosine 0.9965458, off by 0.5 at [1] (largest element 2)"


def test_a_module_as_far_from_double_precision_excuses_the_file() -> None:
    truth = np.array([1.0, 2.0])
    assert excused(array(1, 2.1), array(1, 1.7), truth)  # 0.3 off where the module is 0.1 off
    assert not excused(array(1, 2.1), array(1, 1.5), truth)
    assert not excused(array(1, 2), array(1, 2.1), truth)
    assert not excused(array(1, 2), array(1, np.nan), truth)
    assert not excused(array(1, 2), array(1, 2, 3), truth)


def test_integers_are_excused_only_where_double_precision_decides_otherwise() -> None:
    module, double = np.array([1, 2, 3]), np.array([1, 9, 3])
    assert excused(module, np.array([1, 8, 3]), double)
    assert not excused(module, np.array([7, 2, 3]), double)
