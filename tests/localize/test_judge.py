"""When a tensor is wrong, and how it is said."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from qnn.localize.judge import fault
from qnn.verify.compare import compare_sample

RAMP = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)


def f32(values: object) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def said(truth: object, found: object, threshold: float = 0.999) -> str:
    return fault(compare_sample("t", np.asarray(truth), np.asarray(found)), threshold)


def test_fp16_rounding_is_right() -> None:
    assert said(RAMP, RAMP.astype(np.float16).astype(np.float32)) == ""


def test_a_low_cosine_is_wrong_only_below_the_threshold() -> None:
    other = RAMP + np.float32(0.05) * np.where(np.arange(64).reshape(4, 16) % 2, 1, -1).astype(np.float32)
    assert said(RAMP, other, 0.9999) == "cosine 0.99640"
    assert said(RAMP, other, 0.99) == ""


def test_a_factor_is_seen_though_no_cosine_sees_it() -> None:
    assert said(RAMP, RAMP * np.float32(0.5)) == "its size is off by 50.0%"
    # 3 % is the size of error that a cosine of 0.999 allows (4.5 %).
    assert said(RAMP, RAMP * np.float32(0.97)) == ""
    assert said(f32([3.0]), f32([2.0])) == "its size is off by 33.3%"


def test_overflow_is_named_with_what_the_cpu_has() -> None:
    truth = f32([[1.9e5, 2.0, 3.0, 2e5]])
    assert said(truth, f32([[131008, 2.0, 3.0, 131008]])) == (
        "2 of 4 elements are 131008, which stands for overflow; the CPU has 1.9e+05 to 2e+05 there"
    )


def test_what_is_nothing_to_fp16_is_not_judged() -> None:
    assert said(RAMP * np.float32(1e-6), RAMP * np.float32(-1e-6)) == ""


def test_something_in_place_of_nothing_is_wrong() -> None:
    nothing = np.full(4, 3e-44, np.float32)
    assert said(nothing, f32([0, 0, 0.5, 0])) == "up to 0.5 where the CPU has 0"
    assert said(nothing, f32([0, 131008, 0, 0])).startswith("1 of 4 elements are 131008")


def test_not_finite_is_wrong_unless_the_cpu_has_it_too() -> None:
    nan = f32([1.0, np.nan, 2.0])
    assert said(f32([1.0, 1.5, 2.0]), nan) == "1 elements are not finite"
    assert said(nan, nan) == ""


@pytest.mark.parametrize(("found", "words"), [([1, 2, 3, 4], ""), ([1, 2, 3, 5], "75.00% of the elements are equal")])
def test_integers_are_equal_or_not(found: list[int], words: str) -> None:
    assert said(np.array([1, 2, 3, 4], np.int32), np.array(found, np.int32)) == words


def test_another_shape_is_wrong() -> None:
    assert said(RAMP, RAMP.T) == "float32[16, 4] in place of float32[4, 16]"


def test_quantized_values_may_be_a_step_off() -> None:
    truth = np.array([10, 120, 200, 255], np.uint8)
    assert said(truth, truth - np.uint8(1)) == ""
    assert said(truth, np.array([10, 120, 180, 255], np.uint8)) == "up to 20 steps off, of 255"
