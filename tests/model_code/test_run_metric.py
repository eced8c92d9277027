"""metric.py is called with the float results and with HTP's, and gives flat dictionaries of plain values."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from qnn.errors.base import ForgeError
from qnn.errors.model_code import MetricNotFinite, MetricNotFlat, ModelCodeRaised
from tests.model_code.conftest import Bench, floats

RETURNS = """
    import numpy as np

    def evaluate(*, graph, inputs, outputs, reference, sources):
        return X
"""


def test_each_sample_has_a_pair_of_values(bench: Bench) -> None:
    pairs = bench.metric(
        """
        def evaluate(*, graph, inputs, outputs, reference, sources):
            same = bool((outputs["y"] == reference["y"]).all())
            return {"sum": float((inputs["x"] + outputs["y"]).sum()), "same": same}
        """,
        ({"x": np.array([10], np.float32)}, floats(1), floats(2)),
        ({"x": np.array([20], np.float32)}, floats(3), floats(3)),
    )
    assert [(pair.float_values, pair.htp_values) for pair in pairs] == [
        ({"sum": 11.0, "same": True}, {"sum": 12.0, "same": False}),
        ({"sum": 23.0, "same": True}, {"sum": 23.0, "same": True}),
    ]


def test_arguments_that_are_changed_do_not_change_the_next_call(bench: Bench) -> None:
    (pair,) = bench.metric(
        """
        def evaluate(*, inputs, outputs, reference, **_):
            for arrays in (inputs, outputs, reference):
                for array in arrays.values():
                    array += 1
            return {"x": inputs["x"].item(), "y": outputs["y"].item(), "truth": reference["y"].item()}
        """,
        ({"x": np.array([10], np.float32)}, floats(1), floats(2)),
    )
    assert (pair.float_values, pair.htp_values) == ({"x": 11, "y": 2, "truth": 2}, {"x": 11, "y": 3, "truth": 2})


def test_numpy_scalars_become_plain_values(bench: Bench) -> None:
    code = RETURNS.replace(
        "X", '{"f": np.float32(0.5), "i": np.int64(7), "b": np.bool_(True), "s": np.str_("é\\n"), "z": np.array(2)}'
    )
    (pair,) = bench.metric(code, (floats(1), floats(1), floats(1)))
    assert pair.float_values == {"f": 0.5, "i": 7, "b": True, "s": "é\n", "z": 2}
    assert [type(value) for value in pair.float_values.values()] == [float, int, bool, str, int]
    json.dumps(asdict(pair))


@pytest.mark.parametrize(
    ("returned", "kind", "message"),
    [
        ("[1]", MetricNotFlat, r"evaluate: returned a list, not a dictionary \(sample 0, float results\)"),
        ("None", MetricNotFlat, "returned a NoneType"),
        ('{"iou": np.zeros(2)}', MetricNotFlat, "'iou' is a numpy.ndarray, not a number, string or boolean"),
        ('{"a": {"b": 1}}', MetricNotFlat, "'a' is a dict"),
        ('{"a": None}', MetricNotFlat, "'a' is a NoneType"),
        ('{"a": 1j}', MetricNotFlat, "'a' is a complex"),
        ("{1: 2}", MetricNotFlat, "1 is a int"),
        (r'{"a": "\ud800"}', MetricNotFlat, "a holds half of a surrogate pair"),
        ('{"iou": float("nan")}', MetricNotFinite, "iou is nan"),
        ('{"iou": np.float32("inf")}', MetricNotFinite, "iou is inf"),
        ('{"iou": outputs["nothing"]}', ModelCodeRaised, "KeyError: 'nothing'"),
    ],
)
def test_each_fault_has_its_error(bench: Bench, returned: str, kind: type[ForgeError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        bench.metric(RETURNS.replace("X", returned), (floats(1), floats(1), floats(1)))
    place = caught.value.place
    assert place is not None
    assert place.path == str(bench.folder / "metric.py")
    assert place.line == (4 if kind is ModelCodeRaised else 3)


def test_a_fault_on_htp_results_only_says_so(bench: Bench) -> None:
    code = RETURNS.replace("X", '{"ratio": 1 / outputs["y"].item() if outputs["y"].item() else np.inf}')
    with pytest.raises(MetricNotFinite, match=r"ratio is inf \(sample 1, HTP results\)"):
        bench.metric(code, (floats(1), floats(1), floats(2)), (floats(1), floats(1), floats(0)))


def test_no_values_and_no_samples(bench: Bench) -> None:
    assert bench.metric(RETURNS.replace("X", "{}")) == ()
    (pair,) = bench.metric(RETURNS.replace("X", "{}"), (floats(1), floats(1), floats(1)))
    empty: dict[str, Any] = {}
    assert (pair.float_values, pair.htp_values) == (empty, empty)
