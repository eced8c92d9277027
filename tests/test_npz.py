"""Same arrays, same bytes; every array comes back as it was, under its own name."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from qnn.npz import read_npz, write_npz

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint16", "bool"]
ANY_ARRAY = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
)
# Zip member names end at a NUL and cannot hold lone surrogates; ONNX names hold neither.
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.dictionaries(NAMES, ANY_ARRAY, max_size=4))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, given_arrays: dict[str, NDArray[Any]]) -> None:
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    write_npz(path, given_arrays)
    back = read_npz(path)
    assert list(back) == list(given_arrays)
    for name, array in given_arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()


def test_bytes_depend_on_the_values_alone(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    layouts = {
        "plain": values,
        "fortran": np.asfortranarray(values),
        "strided": np.repeat(values, 2, axis=1)[:, ::2],
        "big": values.astype(">f4"),
    }
    for name, array in layouts.items():
        write_npz(tmp_path / f"{name}.npz", {"x": array, "scalar": np.float32(3)})  # type: ignore[dict-item]
    files = {(tmp_path / f"{name}.npz").read_bytes() for name in layouts}
    assert len(files) == 1


def test_bytes_do_not_depend_on_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_npz(tmp_path / "now.npz", {"x": np.ones(3)})
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    write_npz(tmp_path / "later.npz", {"x": np.ones(3)})
    assert (tmp_path / "now.npz").read_bytes() == (tmp_path / "later.npz").read_bytes()


def test_names_that_end_like_a_member_are_kept_apart(tmp_path: Path) -> None:
    write_npz(tmp_path / "a.npz", {"x": np.zeros(1), "x.npy": np.ones(1)})
    assert {name: array[0] for name, array in read_npz(tmp_path / "a.npz").items()} == {"x": 0, "x.npy": 1}


def test_numpy_reads_what_is_written_and_the_other_way_round(tmp_path: Path) -> None:
    write_npz(tmp_path / "ours.npz", {"a/b": np.arange(3)})
    with np.load(tmp_path / "ours.npz") as loaded:
        assert loaded["a/b"].tolist() == [0, 1, 2]
    np.savez_compressed(tmp_path / "theirs.npz", x=np.arange(4))
    assert read_npz(tmp_path / "theirs.npz")["x"].tolist() == [0, 1, 2, 3]


def test_pickles_are_never_read_or_written(tmp_path: Path) -> None:
    np.savez(tmp_path / "pickle.npz", x=np.array([print], object))
    with pytest.raises(ValueError, match="Object arrays"):
        read_npz(tmp_path / "pickle.npz")
    with pytest.raises(ValueError, match="Object arrays"):
        write_npz(tmp_path / "no.npz", {"x": np.array([print], object)})


@pytest.mark.parametrize("keep", [0, 10, 100, -30])
def test_damage_is_a_value_error(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, {"x": np.arange(100)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"a\.npz"):
        read_npz(path)


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, {"x": np.arange(100)})
    data = bytearray(path.read_bytes())
    data[400] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="Bad CRC"):
        read_npz(path)


def test_files_have_no_name_of_a_machine_or_user(tmp_path: Path) -> None:
    write_npz(tmp_path / "a.npz", {"x": np.zeros(2)})
    assert os.fsencode(tmp_path) not in (tmp_path / "a.npz").read_bytes()
