"""The small graphs of tests/cases: prepared like the original on the CPU, or refused by name.

What the compiler makes of them is tested in tests/cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from qnn.errors import ForgeError
from qnn.model.spec import InputSpec
from tests.cases.folders import DATA
from tests.prepare.graphs import Array, prepared, run

# Equal values: HTP takes the last first, so the rewritten graph, right on HTP, takes the last first on the CPU.
ON_HTP_ONLY = {"iso_topk_ties"}
# A sum in 16 bits may round to the neighbouring 8-bit step.
STEPS = {"qz_cumsum_overflow_a8": 321.3}
REFUSED = {
    "ir99_future": ("QF404", "IR 99 is newer than this runtime understands"),
    "k2_double_io": ("QF410", "'x' is float64"),
    "k2_empty_cache": ("QF411", "'past' has shape [1, 2, 0, 8]"),
    "k2_random_noise": ("QF412", "RandomNormalLike_n"),
    "trilu_range_shape": ("QF407", "NonZero_nz"),
}
FOUND = sorted({path.stem for path in DATA.glob("*.onnx")} - set(REFUSED) - ON_HTP_ONLY)


@dataclass(frozen=True)
class Case:
    """A graph, its inputs, and the inputs as model.yaml would declare them."""

    path: Path
    feeds: dict[str, Array]
    inputs: list[InputSpec]


def load_case(name: str) -> Case:
    path = DATA / f"{name}.onnx"
    graph = onnx.load(path).graph
    constants = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in constants]
    with np.load(path.with_suffix(".npz")) as arrays:
        feeds = {key: arrays[f"in{index}"] for index, key in enumerate(names)}
    inputs = [InputSpec(key, array.shape, "int64" if array.dtype == np.int64 else None) for key, array in feeds.items()]
    return Case(path, feeds, inputs)


@pytest.mark.parametrize("name", FOUND)
def test_prepared_like_the_original(name: str, tmp_path: Path) -> None:
    case = load_case(name)
    facts, after = prepared(case.path, tmp_path, case.inputs)
    onnx.checker.check_model(after)
    before = run(case.path, case.feeds)
    assert [tensor.name for tensor in facts.outputs] == [value.name for value in onnx.load(case.path).graph.output]
    for spec, expected, got in zip(facts.outputs, before, run(after, case.feeds), strict=True):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape) == (np.dtype(spec.dtype), spec.shape)
        np.testing.assert_allclose(
            got.astype(np.float64), expected.astype(np.float64), rtol=1e-6, atol=STEPS.get(name, 1e-6)
        )


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str, tmp_path: Path) -> None:
    case = load_case(name)
    with pytest.raises(ForgeError) as caught:
        prepared(case.path, tmp_path, case.inputs)
    error_id, said = REFUSED[name]
    assert caught.value.id == error_id
    assert said in " ".join((caught.value.message, *caught.value.details))
