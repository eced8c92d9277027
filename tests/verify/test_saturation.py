"""The plateaus are found where the emulator puts them, and nowhere else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from qnn.child import Host, Limits
from qnn.verify import saturation
from qnn.verify.comparison import Plateau
from qnn.verify.saturation import LOG_FLOORS, find_plateaus
from tests.verify.jobs import OneOp


def floats(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def found(reference: NDArray[Any], htp: NDArray[Any]) -> list[tuple[float, int, int]]:
    return [(plateau.value, plateau.elements, plateau.beyond_fp16) for plateau in find_plateaus(reference, htp)]


@pytest.mark.parametrize(
    ("reference", "htp", "expected"),
    [
        (3.8e-44, -131008.0078125, (-131008, 1, 0)),  # Exp(-100)
        (162754.8, 131008.0078125, (131008, 1, 1)),  # Exp(12)
        (70000, 65536.0078125, (65536, 1, 1)),  # Relu(70000) on v75
        (0, -131008.0078125, (-131008, 1, 0)),  # Relu(-70000) on v81
        (1e5, 65504.00390625, (65504, 1, 1)),  # Reciprocal(1e-5)
        (-1e5, -65504.00390625, (-65504, 1, 1)),
        (-109886, -65536.0078125, (-65536, 1, 1)),  # Conv
    ],
)
def test_answers_of_the_emulator(reference: float, htp: float, expected: tuple[float, int, int]) -> None:
    assert found(floats(reference, 1), floats(htp, 1)) == [expected]


@pytest.mark.parametrize(
    ("reference", "htp"),
    [
        (65504, 65504.0039),  # a mask constant that is meant
        (65519, 65504.0039),
        (66049, 66048.0078),  # 257 squared: right, though beyond IEEE's largest
        (131044, 131008.0078),  # 362 squared: as near as HTP can get
        (131200, 131008.0078),
        (90000, 89984.01),
        (80000, 65500.0),  # wrong, but no plateau
        (-65504, -65504.0039),
    ],
)
def test_a_right_answer_near_a_plateau_is_not_one(reference: float, htp: float) -> None:
    assert find_plateaus(floats(reference), floats(htp)) == ()


def test_counts_and_the_reference_range_there() -> None:
    reference = floats(1e6, 3e5, 0.5, 2, 131008)
    htp = floats(131008.01, 131008.01, 131008.01, 2, 131008.01)
    assert find_plateaus(reference, htp) == (Plateau(131008.0, 3, 2, 0.5, 1e6),)


def test_several_plateaus_are_sorted() -> None:
    assert found(floats(1, 1, 1e6), floats(131008, -131008, 65536)) == [
        (-131008, 1, 0),
        (65536, 1, 1),
        (131008, 1, 0),
    ]


@pytest.mark.parametrize(("factor", "floor"), [(1.0, -7.6250005), (0.4342945, -3.3117373), (4.342945, -33.121098)])
def test_the_floor_of_a_logarithm(factor: float, floor: float) -> None:
    """ln, log10 and decibels of 1e-10, as the emulator answered them."""
    reference = np.full(5, np.log(1e-10) * factor, np.float32)
    (plateau,) = find_plateaus(reference, np.full(5, floor, np.float32))
    assert plateau.log_floor
    assert plateau.elements == 5
    assert plateau.value == pytest.approx(-7.625 * factor)


def test_a_floor_needs_three_elements_and_a_much_deeper_reference() -> None:
    floor = np.full(4, -7.625, np.float32)
    deep = floats(-20, -20, 1, 1)
    assert find_plateaus(deep, floor) == ()
    assert find_plateaus(np.full(4, -7.625, np.float32), floor) == ()
    assert find_plateaus(np.full(4, -14.0, np.float32), floor) == ()  # fp16's log is right down to -16.6
    assert find_plateaus(np.full(4, 20.0, np.float32), floor) == ()


def test_float16_bit_patterns_mean_numbers() -> None:
    """Abs of 60000, 66000, 1e6, -1e6 and NaN cast to float16: the patterns came from the emulator."""
    htp = np.array([31571, 31751, 32767, 32767 | 0x8000], np.uint16).view(np.float16)
    reference = np.array([60000, 60000, 0.1, 0.1], np.float16)
    assert found(reference, htp) == [(-131008, 1, 0), (131008, 1, 0)]


def test_integers_saturate_too() -> None:
    assert found(np.array([1000000, 3], np.int32), np.array([131008, 3], np.int32)) == [(131008, 1, 1)]


def test_a_reference_that_is_not_finite_is_left_to_others() -> None:
    assert find_plateaus(floats(np.nan, np.inf), floats(131008, 131008)) == ()
    assert find_plateaus(floats(np.nan), floats(np.nan)) == ()
    assert find_plateaus(floats(), floats()) == ()


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    reference, htp = np.zeros((5, 5), np.float32), np.zeros((5, 5), np.float32)
    htp[0, 3] = htp[4, 4] = 131008
    whole = find_plateaus(reference, htp)
    monkeypatch.setattr(saturation, "_CHUNK", 7)
    assert find_plateaus(reference, htp) == whole
    assert whole[0].elements == 2


@given(arrays.arrays(np.float32, 12, elements=st.floats(-6e4, 6e4, width=32)), st.integers(0, 2**32))
def test_fp16_noise_never_fires(reference: NDArray[np.float32], seed: int) -> None:
    noise = np.random.default_rng(seed).uniform(0.99, 1.01, reference.shape)
    htp = (reference * noise).astype(np.float16).astype(np.float32)
    assert find_plateaus(reference, htp) == ()


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.close()


# A change here means that another QAIRT answers otherwise: measure again, then mend saturation.py and its docstring.
@pytest.mark.parametrize(
    ("operator", "soc_id", "answers"),
    [
        ("Exp", 57, {-100.0: -131008, 20.0: 131008, 11.0: 59872}),
        ("Sqrt", 57, {-1.0: -131008, 4.0: 2}),
        ("Reciprocal", 57, {0.0: 65504, -1e-6: -65504, 0.5: 2}),
        ("Relu", 57, {70000.0: 65536, -70000.0: 0, 60000.0: 60000}),
        ("Relu", 87, {70000.0: 131008, -70000.0: -131008, 60000.0: 60000}),
        ("Log", 57, {0.0: LOG_FLOORS[0], 1e-8: LOG_FLOORS[0], 1.0: 0}),
        ("Abs", 57, {float("nan"): 131008, 66000.0: 65984, 1e6: 131008}),
    ],
)
def test_the_installed_emulator_still_answers_so(
    operator: str, soc_id: int, answers: dict[float, float], host: Host, tmp_path: Path
) -> None:
    job = OneOp(operator, np.array([list(answers)], np.float32), soc_id)
    limits = Limits(seconds=120, memory_bytes=4 << 30)
    htp = host.call("tests.verify.jobs:emulate", job, log=tmp_path / "log", limits=limits)
    assert htp[0].tolist() == pytest.approx(list(answers.values()), rel=1e-6, abs=1e-3)
