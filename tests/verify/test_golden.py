"""Golden files: what is written is read back exactly, under names that every file system takes."""

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from qnn.errors.numerics import GoldenUnusable
from qnn.npz import write_npz
from qnn.tensors import TensorSpec
from qnn.verify.golden import Golden, file_names, golden_layout, input_list, read_golden, write_golden

DTYPES = ["float16", "float32", "int32", "int64", "uint8", "uint16", "int8", "bool"]
ANY_ARRAY = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=3))
)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)


def specs(values: dict[str, NDArray[Any]]) -> list[TensorSpec]:
    return [TensorSpec(name, str(array.dtype), array.shape) for name, array in values.items()]


def written(
    folder: Path, samples: list[tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]], graph: str = "det"
) -> Golden:
    """Golden files of arrays, by way of .npz files as a build makes them."""
    paths: tuple[list[Path], list[Path]] = ([], [])
    for number, sample in enumerate(samples):
        for kind, values, files in zip(("in", "out"), sample, paths, strict=True):
            files.append(folder / f"{kind}{number}.npz")
            write_npz(files[-1], values)
    inputs, outputs = (specs(values) for values in samples[0])
    return write_golden(folder, graph, inputs=inputs, outputs=outputs, samples=paths[0], references=paths[1])


@given(st.dictionaries(NAMES, ANY_ARRAY, min_size=1, max_size=3), st.dictionaries(NAMES, ANY_ARRAY, max_size=3))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, inputs: dict[str, NDArray[Any]], outputs: dict[str, NDArray[Any]]
) -> None:
    folder = tmp_path_factory.mktemp("bundle")
    golden = written(folder, [(inputs, outputs), (inputs, outputs)])
    back = list(read_golden(folder, golden))
    assert len(back) == 2
    for sample in back:
        for given_arrays, read in zip((inputs, outputs), sample, strict=True):
            assert list(read) == list(given_arrays)
            for name, array in given_arrays.items():
                assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
                assert read[name].tobytes() == array.tobytes()


@given(st.lists(NAMES, max_size=8))
def test_file_names_are_fit_distinct_and_repeatable(names: list[str]) -> None:
    files = file_names(names)
    assert files == file_names(names)
    assert len({file.lower() for file in files}) == len(names)
    for file in files:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,140}\.raw", file)


@pytest.mark.parametrize("name", ["x", "sigmoid_0.tmp_0", "stateN", "conv2d_19", "a-b.c"])
def test_a_fit_name_stays(name: str) -> None:
    assert file_names([name]) == [f"{name}.raw"]


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (["StatefulPartitionedCall:2"], ["StatefulPartitionedCall_2-5d33e0e9.raw"]),
        (["/model.22/Mul_2"], ["_model.22_Mul_2-1a2a2a2a.raw"]),
        (["x", "X"], ["x.raw", "X-4b68ab38.raw"]),
        (["x", "x"], ["x.raw", "x-2d711642.raw"]),
        (["x", "x", "x"], ["x.raw", "x-2d711642.raw", "x-2d711642-2.raw"]),
        (["nul.0"], ["tensor_nul.0-00000000.raw"]),
        (["../up"], ["_up-00000000.raw"]),
        (["é"], ["_-00000000.raw"]),
    ],
)
def test_other_names_get_a_digest(names: list[str], files: list[str]) -> None:
    digests = [hashlib.sha256(name.encode()).hexdigest()[:8] for name in names]
    expected = [
        re.sub(r"-[0-9a-f]{8}(?=[-.])", f"-{digest}", file) for file, digest in zip(files, digests, strict=True)
    ]
    assert file_names(names) == expected


def test_layout_and_bytes(tmp_path: Path) -> None:
    golden = written(
        tmp_path,
        [
            (
                {"x": np.array([[1.0, -2.0]], np.float32), "n": np.array(258, np.int32)},
                {"y/0": np.array([True, False])},
            )
        ],
    )
    digest = hashlib.sha256(b"y/0").hexdigest()[:8]
    folder = tmp_path / "golden/det/sample_000"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "x.raw": b"\x00\x00\x80\x3f\x00\x00\x00\xc0",
        "n.raw": b"\x02\x01\x00\x00",
        f"y_0-{digest}.raw": b"\x01\x00",
    }
    assert golden.outputs[0].file == f"y_0-{digest}.raw"
    listing = (tmp_path / "golden/det/input_list.txt").read_text()
    assert listing == "x:=golden/det/sample_000/x.raw n:=golden/det/sample_000/n.raw\n"


def test_input_list_has_a_line_a_sample_and_bare_paths_where_names_hold_blanks() -> None:
    plain = golden_layout("g", [TensorSpec("x", "float32", (1,))], [], 2)
    assert input_list(plain) == "x:=golden/g/sample_000/x.raw\nx:=golden/g/sample_001/x.raw\n"
    blank = golden_layout("g", [TensorSpec("a b", "float32", (1,)), TensorSpec("c", "float32", (1,))], [], 1)
    digest = hashlib.sha256(b"a b").hexdigest()[:8]
    assert input_list(blank) == f"golden/g/sample_000/a_b-{digest}.raw golden/g/sample_000/c.raw\n"


def test_an_input_that_is_also_an_output_has_two_files(tmp_path: Path) -> None:
    same = {"x": np.array([1.0], np.float32)}
    golden = written(tmp_path, [(same, {"x": np.array([2.0], np.float32)})])
    ((given_back, result),) = read_golden(tmp_path, golden)
    assert (given_back["x"][0], result["x"][0]) == (1, 2)


def test_two_writes_are_the_same_bytes(tmp_path: Path) -> None:
    sample = ({"x": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))}, {"y": np.ones(2, np.float32)})
    trees = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, [sample])
        files = sorted((tmp_path / name / "golden").rglob("*.*"))
        trees.append([(path.relative_to(tmp_path / name), path.read_bytes()) for path in files])
    assert trees[0] == trees[1]
    assert len(trees[0]) == 3


@pytest.mark.parametrize("data", [None, b"\x01", b"\x01\x00\x01\x00", b"\x02\x00\x01"])
def test_missing_cut_or_impossible_files_are_refused(tmp_path: Path, data: bytes | None) -> None:
    golden = written(tmp_path, [({"mask": np.array([True, False, True])}, {})])
    path = tmp_path / "golden/det/sample_000/mask.raw"
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(GoldenUnusable, match=r"mask\.raw"):
        list(read_golden(tmp_path, golden))


def test_an_array_that_does_not_fit_its_spec_is_refused(tmp_path: Path) -> None:
    write_npz(tmp_path / "in.npz", {"x": np.zeros(3, np.float32)})
    write_npz(tmp_path / "out.npz", {})
    for spec in (TensorSpec("x", "float32", (4,)), TensorSpec("x", "float16", (3,))):
        with pytest.raises(ValueError, match=r"x float.*given as float32\[3\]"):
            write_golden(
                tmp_path,
                "g",
                inputs=[spec],
                outputs=[],
                samples=[tmp_path / "in.npz"],
                references=[tmp_path / "out.npz"],
            )
