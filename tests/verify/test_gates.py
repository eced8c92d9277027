"""The defaults pass what fp16 and good quantization do, and fail each kind of silent fault seen on the emulator."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qnn.errors.numerics import MetricFailed, OutputChanged, SaturatedOutput, VerifyFailed
from qnn.model.spec import Gates, MetricGate
from qnn.verify.compare import compare_sample, merge
from qnn.verify.comparison import TIES, OutputComparison
from qnn.verify.gates import (
    DEFAULTS,
    Verdict,
    describe_metric_gate,
    effective_gates,
    judge,
    judge_metric,
    merge_gates,
    metric_error,
    verify_error,
)

Floats = NDArray[np.float32]
RANDOM = np.random.default_rng(7)
FEATURES: Floats = RANDOM.standard_normal((1, 8, 20, 20)).astype(np.float32)


def compared(reference: NDArray[Any], htp: NDArray[Any], name: str = "y") -> OutputComparison:
    return compare_sample(name, reference, htp)


def verdict(reference: NDArray[Any], htp: NDArray[Any], precision: str = "fp16", own: Gates | None = None) -> Verdict:
    return judge(compared(reference, htp), Gates(), own, precision)


def missed(result: Verdict) -> set[str]:
    return {failure.gate for failure in result.failures}


def as_fp16(values: NDArray[Any]) -> Floats:
    return values.astype(np.float16).astype(np.float32)


def softmax(logits: Floats) -> Floats:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)
    return shares


def with_values(values: Floats, where: tuple[Any, ...], replacement: float | Floats) -> Floats:
    changed = values.copy()
    changed[where] = replacement
    return changed


FAULTS: dict[str, Callable[[Floats], Floats]] = {
    "shifted by one": lambda y: np.roll(y, 1, axis=3),
    "last window of a pooling is zero": lambda y: with_values(y, (..., -1), 0.0),
    "one channel of eight is zero": lambda y: with_values(y, (0, 3), 0.0),
    "border doubled": lambda y: with_values(y, (..., 0, slice(None)), y[..., 0, :] * 2),
    "a factor, as in reducel2_overflow": lambda y: y * np.float32(1.54),
    "a factor of one tenth more": lambda y: y * np.float32(1.1),
    "one element of 3200 far off": lambda y: with_values(y, (0, 0, 0, 0), y[0, 0, 0, 0] + 1),
    "all zero": lambda y: y * 0,
    "noise of a tenth": lambda y: (y + RANDOM.standard_normal(y.shape) * 0.1).astype(np.float32),
    "overflow in the border": lambda y: with_values(y, (0, 0, 0, slice(3)), -131008.0078),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_kind_of_fault_fails_in_fp16(fault: str) -> None:
    assert not verdict(FEATURES, FAULTS[fault](FEATURES)).passed


def test_the_size_gates_catch_what_the_cosine_hides() -> None:
    one_off = verdict(FEATURES, FAULTS["one element of 3200 far off"](FEATURES))
    assert missed(one_off) == {"max_rel"}
    factor = verdict(FEATURES, FAULTS["a factor of one tenth more"](FEATURES))
    assert "gain" in missed(factor)
    assert "cosine" not in missed(factor)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_fp16_rounding_passes_at_every_scale(scale: float) -> None:
    values = FEATURES * np.float32(scale)
    assert verdict(values, as_fp16(values * np.float32(1.003))).passed


def test_probabilities_may_be_further_off_than_features() -> None:
    """PP-OCRv4's detector: 0.108 at the edge of a mask of 1.0 is right; the same share of features is not."""
    mask = as_fp16(RANDOM.uniform(0, 1, (1, 1, 320, 320)))
    assert verdict(mask, with_values(mask, (0, 0, 5, 5), abs(mask[0, 0, 5, 5] - 0.2))).passed
    signed = mask * 2 - 1
    assert missed(verdict(signed, with_values(signed, (0, 0, 5, 5), signed[0, 0, 5, 5] - 0.2))) == {"max_rel"}


def test_a_tiny_output_is_judged_by_its_size_of_error() -> None:
    """silero-vad: 0.0286 on float and 0.0255 on HTP is right, though a tenth off."""
    assert verdict(np.array([[0.0286]], np.float32), np.array([[0.0255]], np.float32)).passed
    wrong = verdict(np.array([[0.0286]], np.float32), np.array([[0.0500]], np.float32))
    assert missed(wrong) == {"max_abs"}
    assert wrong.failures[0].sentence == ("largest error 0.0214 at [0, 0] (float 0.0286, HTP 0.05) is over 0.01")
    large = np.array([300.0], np.float32)
    assert verdict(large, large + 2).passed  # within 1 % of the full scale
    assert not verdict(large, large + 4).passed
    assert verdict(large, -large).gates.cosine is None


def test_an_output_without_signal_is_judged_by_its_size_of_error() -> None:
    zeros = np.zeros((1, 16), np.float32)
    assert verdict(zeros, zeros + np.float32(1e-6)).passed
    assert missed(verdict(zeros, zeros + np.float32(0.02))) == {"max_abs"}


def test_one_weak_sample_does_not_fail_the_others() -> None:
    """PP-OCRv4's detector on a page without text: cosine 0.85 of a result that never exceeds 0.0005."""
    page = compared(as_fp16(FEATURES), as_fp16(FEATURES))
    faint = FEATURES * np.float32(1e-4)
    blank = compared(faint, (faint * RANDOM.uniform(0.2, 1.8, faint.shape)).astype(np.float32))
    assert judge(merge(page, blank), Gates(), None, "fp16").passed
    alone = judge(blank, Gates(), None, "fp16")
    assert "cosine" in missed(alone)
    assert any("a stronger sample may tell more" in failure.sentence for failure in alone.failures)


def test_classes_must_agree_except_for_ties() -> None:
    logits = RANDOM.standard_normal((40, 100)).astype(np.float32)
    logits[np.arange(40), np.arange(40)] = 12
    probabilities = softmax(logits)
    flipped = probabilities.copy()
    flipped[0, 0], flipped[0, 1] = 0.4, 0.6
    assert "argmax" in missed(verdict(probabilities, flipped))
    tied = probabilities.copy()
    tied[0] = 0
    tied[0, 0], tied[0, 1] = 0.503, 0.497
    swapped = tied.copy()
    swapped[0, 0], swapped[0, 1] = 0.497, 0.503
    assert verdict(tied, swapped).passed


@pytest.mark.parametrize(
    ("precision", "noise", "passes"),
    [
        ("w8a16", 0.05, True),
        ("w8a16", 0.2, False),
        ("w8a8", 0.15, True),
        ("w8a8", 0.4, False),
        ("mixed", 0.15, True),
        ("w4a16", 0.15, True),
        ("fp16", 0.15, False),
    ],
)
def test_quantized_precisions_bear_more(precision: str, noise: float, passes: bool) -> None:
    random = np.random.default_rng(3)
    htp = (FEATURES + random.standard_normal(FEATURES.shape) * noise).astype(np.float32)
    assert verdict(FEATURES, htp, precision).passed == passes


def test_boxes_far_off_fail_in_w8a16_though_the_cosine_is_high() -> None:
    """YOLOv8n in W8A16: cosine 0.9954, boxes up to 149 of 319 pixels off (the CPU computes the same file right)."""
    boxes = RANDOM.uniform(0, 319, (1, 22, 2100)).astype(np.float32)
    off = with_values(boxes, (0, 2, slice(30)), boxes[0, 2, :30] - 149)
    result = verdict(boxes, off, "w8a16")
    assert "cosine" not in missed(result)
    assert "max_rel" in missed(result)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
def test_integers_and_booleans_must_be_equal(dtype: type) -> None:
    reference: NDArray[Any] = np.array([[0, 1, 1, 0, 1]], dtype)
    assert verdict(reference, reference.copy()).passed
    htp = reference.copy()
    htp[0, 3] = 1
    result = verdict(reference, htp)
    assert missed(result) == {"equal"}
    assert result.failures[0].sentence.startswith("1 of 5")
    assert result.failures[0].sentence.endswith("the farthest by 1 at [0, 3] (float 0, HTP 1)")


def test_integers_beyond_32_bits_are_explained() -> None:
    result = verdict(np.array([2**31 + 5]), np.array([-(2**31) + 5]))
    assert result.failures[0].sentence.endswith(
        "(float 2147483653, HTP -2147483643); HTP has no integers beyond 32 bits"
    )


def test_only_an_outputs_own_gates_loosen_equality() -> None:
    reference, htp = np.arange(10), np.arange(10)
    htp[4] = 5
    integers = compared(reference, htp)
    loose = Gates(max_abs=1, argmax=0.9)
    assert not judge(integers, loose, None, "fp16").passed
    assert judge(integers, Gates(), Gates(max_abs=1), "fp16").passed
    assert judge(integers, Gates(), Gates(argmax=0.9), "fp16").passed
    assert missed(judge(integers, Gates(), Gates(max_abs=0.5), "fp16")) == {"max_abs"}
    assert missed(judge(integers, Gates(), Gates(argmax=0.95), "fp16")) == {"argmax"}


def test_saturation_fails_whatever_the_gates_say() -> None:
    open_gates = Gates(cosine=-1, max_abs=1e9, argmax=0)
    result = verdict(FEATURES, FAULTS["overflow in the border"](FEATURES), own=open_gates)
    assert missed(result) == {"saturation"}
    assert "HTP answers -131008 at 3 of 3200 elements" in result.failures[0].sentence
    assert "inside the graph" in result.failures[0].sentence


def test_a_reference_beyond_fp16_is_named_as_the_cause() -> None:
    result = verdict(np.array([1e6, 2, 3, 4, 5], np.float32), np.array([131008, 2, 3, 4, 5], np.float32))
    assert "says 1e+06: 1 of them beyond fp16's 65504" in result.failures[0].sentence


@pytest.mark.parametrize(
    ("htp", "gate"),
    [
        (FEATURES.astype(np.float16), "dtype"),
        (FEATURES[:, :4], "shape"),
        (with_values(FEATURES, (0, 0, 0, 0), np.nan), "finite"),
    ],
)
def test_what_cannot_be_compared_fails(htp: NDArray[Any], gate: str) -> None:
    assert gate in missed(verdict(FEATURES, htp, own=Gates(cosine=-1, max_abs=1e9, argmax=0)))


def test_own_gates_replace_the_models_and_one_size_gate_replaces_both() -> None:
    model = Gates(cosine=0.9, max_rel=0.5, argmax=0.8)
    assert merge_gates(model, Gates()) == model
    assert merge_gates(model, Gates(cosine=0.99)) == Gates(cosine=0.99, max_rel=0.5, argmax=0.8)
    assert merge_gates(model, Gates(max_abs=0.2)) == Gates(cosine=0.9, max_abs=0.2, argmax=0.8)


def test_effective_gates_fill_in_defaults_where_they_have_a_meaning() -> None:
    plain = compared(FEATURES, FEATURES)
    assert effective_gates(plain, Gates(), None, "fp16") == Gates(cosine=0.999, max_rel=0.1, argmax=0.99)
    assert effective_gates(plain, Gates(), Gates(max_abs=3), "fp16") == Gates(cosine=0.999, max_abs=3, argmax=0.99)
    assert effective_gates(plain, Gates(cosine=0.5), None, "w8a8") == Gates(cosine=0.5, max_rel=0.3, argmax=0.9)
    mask = compared(np.ones((1, 9, 2), np.float32), np.ones((1, 9, 2), np.float32))
    assert effective_gates(mask, Gates(), None, "fp16") == Gates(cosine=0.999, max_rel=0.25)
    tiny = compared(np.array([4.0], np.float32), np.array([4.0], np.float32))
    assert effective_gates(tiny, Gates(cosine=0.9), None, "fp16") == Gates(max_abs=0.04)
    assert effective_gates(tiny, Gates(max_rel=0.2), None, "fp16") == Gates(max_rel=0.2)
    mask_of_bools = compared(np.array([True]), np.array([True]))
    assert effective_gates(mask_of_bools, Gates(cosine=0.9, max_abs=1), None, "fp16") == Gates()


def test_a_looser_cosine_gate_loosens_the_gain_with_it() -> None:
    factor = FEATURES * np.float32(1.08)
    assert "gain" in missed(verdict(FEATURES, factor, own=Gates(max_abs=10)))
    assert verdict(FEATURES, factor, own=Gates(cosine=0.99, max_abs=10)).passed


def test_every_precision_has_defaults_no_stricter_than_fp16() -> None:
    fp16 = DEFAULTS["fp16"]
    assert set(DEFAULTS) == {"fp16", "w8a16", "w4a16", "w8a8", "mixed"}
    for default in DEFAULTS.values():
        assert default.cosine <= fp16.cosine
        assert default.max_rel >= fp16.max_rel
        assert default.max_rel_share >= default.max_rel
        assert default.tie in TIES


@given(st.floats(0, 2), st.floats(0, 2))
def test_more_noise_never_passes_where_less_fails(first: float, second: float) -> None:
    noise = np.random.default_rng(1).standard_normal(FEATURES.shape)
    less, more = (verdict(FEATURES, (FEATURES + noise * n).astype(np.float32)) for n in sorted((first, second)))
    assert less.passed or not more.passed


def test_the_error_names_the_worst_output_and_lists_all_failures() -> None:
    good = judge(compared(FEATURES, FEATURES, "good"), Gates(), None, "fp16")
    slightly = judge(compared(FEATURES, FEATURES * np.float32(1.06), "slightly"), Gates(), None, "fp16")
    badly = judge(compared(FEATURES, np.roll(FEATURES, 1, 3), "badly"), Gates(), None, "fp16")
    assert verify_error("det on SM8650", [good]) is None
    error = verify_error("det on SM8650", [good, slightly, badly])
    assert isinstance(error, VerifyFailed)
    assert error.message == "det on SM8650: output badly differs from the float model (and 1 more)"
    assert error.details[0].startswith("badly: cosine ")
    assert any(line.startswith("slightly: ") for line in error.details)
    assert not any(line.startswith("good: ") for line in error.details)


def test_saturation_and_then_unusable_outputs_come_first() -> None:
    off = judge(compared(FEATURES, np.roll(FEATURES, 1, 3), "off"), Gates(), None, "fp16")
    shape = judge(compared(FEATURES, FEATURES[:, :2], "shape"), Gates(), None, "fp16")
    full = judge(compared(FEATURES, FAULTS["overflow in the border"](FEATURES), "full"), Gates(), None, "fp16")
    assert isinstance(verify_error("g", [off, shape, full]), SaturatedOutput)
    changed = verify_error("g", [off, shape])
    assert isinstance(changed, OutputChanged)
    assert changed.message == "g: output shape cannot be compared (and 1 more)"


def test_one_wrong_integer_outranks_a_float_that_is_a_little_off() -> None:
    ids = judge(compared(np.arange(4), np.arange(4) + 1, "ids"), Gates(), None, "fp16")
    slightly = judge(compared(FEATURES, FEATURES * np.float32(1.06), "slightly"), Gates(), None, "fp16")
    error = verify_error("g", [slightly, ids])
    assert error is not None
    assert "output ids" in error.message


@pytest.mark.parametrize(
    ("gate", "on_float", "on_htp", "passes"),
    [
        (MetricGate(equal=True), "Total 98", "Total 98", True),
        (MetricGate(equal=True), "Total 98", "Total 9B", False),
        (MetricGate(equal=True), True, 1, False),
        (MetricGate(equal=True), 3, 3, True),
        (MetricGate(minimum=0.98), 1.0, 0.98, True),
        (MetricGate(minimum=0.98), 1.0, 0.979, False),
        (MetricGate(minimum=0.98), 1.0, float("nan"), False),
        (MetricGate(maximum=0.02), 0, 0.03, False),
        (MetricGate(maximum=2), 0, 2, True),
        (MetricGate(max_drop=0.01), 0.95, 0.945, True),
        (MetricGate(max_drop=0.01), 0.95, 0.93, False),
        (MetricGate(max_drop=0.01), 0.95, 0.99, True),
        (MetricGate(minimum=0.5), "a", "b", False),
        (MetricGate(minimum=0), True, True, False),
    ],
)
def test_metric_gates(gate: MetricGate, on_float: Any, on_htp: Any, passes: bool) -> None:
    failures = judge_metric({"value": on_float, "more": 1}, {"value": on_htp, "more": 2}, {"value": gate})
    assert (not failures) == passes


def test_a_metric_value_that_is_not_returned_fails_and_the_error_names_it() -> None:
    failures = judge_metric({}, {}, {"text": MetricGate(equal=True)})
    assert metric_error("rec on SM8650", []) is None
    error = metric_error("rec on SM8650", failures)
    assert isinstance(error, MetricFailed)
    assert error.message == "rec on SM8650: the task metric misses its gate: text"
    assert error.details == ("text: metric.py returned no such value",)


def test_metric_sentences_hold_both_values_and_the_gate() -> None:
    (failure,) = judge_metric({"iou": 0.9934}, {"iou": 0.97}, {"iou": MetricGate(max_drop=0.01)})
    assert failure.sentence == "iou is 0.97 on HTP: it drops by 0.0234 from float's 0.9934, more than 0.01"


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (MetricGate(equal=True), "equal"),
        (MetricGate(minimum=0.98), "min 0.98"),
        (MetricGate(maximum=0), "max 0"),
        (MetricGate(max_drop=0.01), "max_drop 0.01"),
    ],
)
def test_metric_gates_read_as_in_the_yaml(gate: MetricGate, words: str) -> None:
    assert describe_metric_gate(gate) == words


def test_gates_are_importable_without_numpy() -> None:
    code = "import sys; sys.modules['numpy'] = None; import qnn.verify.gates, qnn.verify.golden"
    subprocess.run([sys.executable, "-c", code], check=True)
