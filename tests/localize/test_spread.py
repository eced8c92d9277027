"""How an error lies along the axes."""

from __future__ import annotations

import numpy as np

from qnn.localize.facts import Spread
from qnn.localize.spread import spreads


def test_one_bad_channel_is_named() -> None:
    truth = np.ones((1, 8, 6, 6), np.float32)
    found = truth.copy()
    found[:, 5] += 0.5
    assert spreads(truth, found) == (Spread(axis=1, size=8, indices=(5,), share=1.0),)


def test_one_bad_token_among_even_noise() -> None:
    truth = np.zeros((1, 100, 4), np.float32)
    found = np.full((1, 100, 4), 0.001, np.float32)
    found[0, 42] = 1.0
    (spread,) = spreads(truth, found)
    assert (spread.axis, spread.indices) == (1, (42,))
    assert 0.999 < spread.share < 1


def test_an_even_error_tells_of_no_axis() -> None:
    assert spreads(np.zeros((4, 8), np.float32), np.ones((4, 8), np.float32)) == ()


def test_the_most_uneven_axis_comes_first() -> None:
    truth = np.zeros((10, 1000), np.float32)
    found = truth.copy()
    found[3, 700] = 1.0
    assert [spread.axis for spread in spreads(truth, found)] == [1, 0]


def test_not_finite_counts_and_equal_tells_nothing() -> None:
    truth = np.ones((3, 4), np.float32)
    found = truth.copy()
    assert spreads(truth, found) == ()
    found[1] = np.nan
    (spread,) = spreads(truth, found)
    assert (spread.axis, spread.indices, spread.share) == (0, (1,), 1.0)


def test_other_shapes_and_scalars_tell_nothing() -> None:
    assert spreads(np.ones((2, 2)), np.ones((4,))) == ()
    assert spreads(np.array(1.0), np.array(2.0)) == ()
