"""Shipped samples are held to the rules of data.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qnn.errors.base import ForgeError
from qnn.errors.model_code import NotASample, SampleDtype, SampleNames, SampleNotFinite, SampleShape
from qnn.model_code import take_samples
from qnn.npz import read_npz
from tests.model_code.conftest import INPUTS

GOOD = {"n": np.int32(3), "x": np.ones((1, 4), np.float32)}


def test_samples_are_taken_in_order_with_the_graphs_inputs(tmp_path: Path) -> None:
    for name, value in (("b", 1), ("a", 2)):
        np.savez_compressed(tmp_path / f"{name}.npz", **{**GOOD, "n": np.int32(value)})  # type: ignore[arg-type]
    (tmp_path / "out").mkdir()
    taken = take_samples([tmp_path / "b.npz", tmp_path / "a.npz"], INPUTS, tmp_path / "out")
    assert [path.name for path in taken] == ["000.npz", "001.npz"]
    assert [int(read_npz(path)["n"]) for path in taken] == [1, 2]
    assert list(read_npz(taken[0])) == ["x", "n"]


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"y": np.zeros(1)}, SampleNames, "has 'y', which is no input of the graph"),
        ({"x": np.ones((2, 4), np.float32)}, SampleShape, r"x has shape \[2, 4\], the graph takes \[1, 4\]"),
        ({"n": np.int64(3)}, SampleDtype, "n is int64, the graph takes int32"),
        ({"x": np.full((1, 4), np.inf, np.float32)}, SampleNotFinite, "x holds 4 of 4 values"),
    ],
)
def test_a_fault_names_the_file(tmp_path: Path, change: dict[str, Any], kind: type[ForgeError], message: str) -> None:
    file = tmp_path / "first.npz"
    np.savez(file, **{**GOOD, **change})
    with pytest.raises(kind, match=message) as caught:
        take_samples([file], INPUTS, tmp_path)
    assert str(caught.value.place) == str(file)


def test_a_file_that_is_no_npz_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_text("text")
    with pytest.raises(NotASample, match=r"a\.npz is not a readable \.npz file"):
        take_samples([tmp_path / "a.npz"], INPUTS, tmp_path)
