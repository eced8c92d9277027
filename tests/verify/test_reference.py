"""The float reference: the original file as it is, the same bits every time, and no truth that is not finite."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from qnn.errors.numerics import ReferenceFailed, ReferenceNotFinite, SampleDoesNotFit
from qnn.npz import read_npz, write_npz
from qnn.tensors import TensorSpec
from qnn.verify.reference import ReferenceRequest, ReferenceResult, reference

Dims = Sequence[int | str]


class Bench:
    """A model file and samples in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "out").mkdir()

    def model(
        self, nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, Dims]], outputs: dict[str, tuple[int, Dims]]
    ) -> None:
        values = ([helper.make_tensor_value_info(name, *info) for name, info in io.items()] for io in (inputs, outputs))
        graph = helper.make_graph(nodes, "g", *values)
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
            self._folder / "m.onnx",
        )

    def run(self, *samples: dict[str, NDArray[Any]]) -> ReferenceResult:
        paths = [self._folder / f"{number:03d}.npz" for number in range(len(samples))]
        for path, sample in zip(paths, samples, strict=True):
            write_npz(path, sample)
        return reference(ReferenceRequest(self._folder / "m.onnx", tuple(paths), self._folder / "out"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def gather(bench: Bench) -> Bench:
    """y = table[ids], with a dynamic batch: `ids` int64 [n, 2], `table` float [4]."""
    bench.model(
        [helper.make_node("Gather", ["table", "ids"], ["y/0"])],
        {"ids": (TensorProto.INT64, ["n", 2]), "table": (TensorProto.FLOAT, [4])},
        {"y/0": (TensorProto.FLOAT, ["n", 2])},
    )
    return bench


TABLE = np.array([10, 11, 12, 13], np.float32)


def test_each_sample_gives_a_file_of_all_outputs(gather: Bench) -> None:
    ids = np.array([[0, 3]], np.int64)
    result = gather.run({"ids": ids, "table": TABLE}, {"ids": ids + 0 * 1, "table": TABLE * 2})
    assert [file.name for file in result.files] == ["000.npz", "001.npz"]
    assert result.outputs == (TensorSpec("y/0", "float32", (1, 2)),)
    assert [read_npz(file)["y/0"].tolist() for file in result.files] == [[[10, 13]], [[20, 26]]]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int8])
def test_integers_are_fed_in_the_files_own_dtype(gather: Bench, dtype: type) -> None:
    ids: NDArray[Any] = np.array([[1, 2]], dtype)
    result = gather.run({"ids": ids, "table": TABLE})
    assert read_npz(result.files[0])["y/0"].tolist() == [[11, 12]]


def test_integers_are_narrowed_only_where_they_fit(bench: Bench) -> None:
    bench.model(
        [helper.make_node("Identity", ["ids"], ["y"])],
        {"ids": (TensorProto.INT32, [2])},
        {"y": (TensorProto.INT32, [2])},
    )
    result = bench.run({"ids": np.array([2**31 - 1, -(2**31)], np.int64)})
    assert read_npz(result.files[0])["y"].tolist() == [2**31 - 1, -(2**31)]
    with pytest.raises(SampleDoesNotFit, match=r"000\.npz: ids holds values that do not fit the model's int32"):
        bench.run({"ids": np.array([2**31, 0], np.int64)})


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"ids": np.zeros((1, 2), np.int64)}, "lacks table"),
        ({"ids": np.zeros((1, 2), np.int64), "table": TABLE, "more": TABLE}, "has more, which the model has not"),
        ({"id": np.zeros((1, 2), np.int64), "table": TABLE}, "lacks ids and has id"),
        ({"ids": np.zeros((1, 3), np.int64), "table": TABLE}, r"ids has shape \[1, 3\], the model declares \['n', 2\]"),
        ({"ids": np.zeros(2, np.int64), "table": TABLE}, r"ids has shape \[2\]"),
        ({"ids": np.zeros((1, 2), np.float32), "table": TABLE}, "ids is float32, the model takes int64"),
        ({"ids": np.zeros((1, 2), np.bool_), "table": TABLE}, "ids is bool, the model takes int64"),
        ({"ids": np.zeros((1, 2), np.int64), "table": TABLE.astype(np.float64)}, "table is float64"),
    ],
)
def test_a_sample_that_does_not_fit_is_refused(gather: Bench, sample: dict[str, NDArray[Any]], message: str) -> None:
    with pytest.raises(SampleDoesNotFit, match=message):
        gather.run(sample)


def test_a_sample_that_is_no_npz_is_refused(gather: Bench, tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_text("no archive")
    with pytest.raises(SampleDoesNotFit, match=r"bad\.npz is not a readable \.npz file"):
        reference(ReferenceRequest(tmp_path / "m.onnx", (tmp_path / "bad.npz",), tmp_path / "out"))


@pytest.mark.parametrize(("operator", "value", "shown"), [("Log", 0.0, "-inf"), ("Sqrt", -1.0, "nan")])
def test_a_result_that_is_not_finite_names_the_output_and_the_place(
    bench: Bench, operator: str, value: float, shown: str
) -> None:
    bench.model(
        [helper.make_node("Abs", ["x"], ["fine"]), helper.make_node(operator, ["x"], ["scores"])],
        {"x": (TensorProto.FLOAT, [1, 3])},
        {"fine": (TensorProto.FLOAT, [1, 3]), "scores": (TensorProto.FLOAT, [1, 3])},
    )
    good, bad = np.array([[1, 1, 1]], np.float32), np.array([[1, value, value]], np.float32)
    with pytest.raises(ReferenceNotFinite) as caught:
        bench.run({"x": good}, {"x": bad})
    message = caught.value.message
    assert message.startswith("output scores of the float model holds 2 of 3 elements that are not finite")
    assert message.endswith(f"sample 001.npz, the first {shown} at [0, 1]")


def test_a_file_that_is_no_onnx_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"not a model")
    with pytest.raises(ReferenceFailed, match=r"m\.onnx does not load"):
        bench.run({})


def test_a_run_that_fails_names_the_sample(gather: Bench) -> None:
    with pytest.raises(
        ReferenceFailed, match=r"m\.onnx fails on sample 000\.npz: .*indices element out of data bounds"
    ):
        gather.run({"ids": np.array([[0, 9]], np.int64), "table": TABLE})


def test_a_sequence_is_no_tensor(bench: Bench, tmp_path: Path) -> None:
    node = helper.make_node("SequenceConstruct", ["x"], ["s"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    s = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [1])
    graph = helper.make_graph([node], "g", [x], [s])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(ReferenceFailed, match="output s is not a tensor of numbers but list"):
        bench.run({"x": np.zeros(1, np.float32)})


def test_the_same_bits_every_time(bench: Bench, tmp_path: Path) -> None:
    bench.model(
        [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("ReduceSum", ["c"], ["y"], keepdims=0)],
        {"a": (TensorProto.FLOAT, [64, 512]), "b": (TensorProto.FLOAT, [512, 64])},
        {"c": (TensorProto.FLOAT, [64, 64]), "y": (TensorProto.FLOAT, [])},
    )
    random = np.random.default_rng(0)
    sample = {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in (("a", (64, 512)), ("b", (512, 64)))
    }
    runs = {bench.run(sample).files[0].read_bytes() for _ in range(3)}
    assert len(runs) == 1
    assert read_npz(tmp_path / "out" / "000.npz")["y"].shape == ()


@pytest.mark.parametrize("outputs", [(), ("h",)])
def test_two_nodes_of_one_name_are_two_nodes(bench: Bench, tmp_path: Path, outputs: tuple[str, ...]) -> None:
    """ONNX Runtime refuses such files, ONNX does not; weights in a second file are still found."""
    half = onnx.numpy_helper.from_array(np.full((1, 4), 0.5, np.float32), "half")
    nodes = [helper.make_node("Mul", ["x", "half"], ["h"], "same"), helper.make_node("Neg", ["h"], ["y"], "same")]
    bench.model(nodes, {"x": (TensorProto.FLOAT, [1, 4])}, {"y": (TensorProto.FLOAT, [1, 4])})
    made = onnx.load(tmp_path / "m.onnx")
    made.graph.initializer.append(half)
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    x = np.arange(4, dtype=np.float32).reshape(1, 4)
    write_npz(tmp_path / "000.npz", {"x": x})
    reference(ReferenceRequest(tmp_path / "m.onnx", (tmp_path / "000.npz",), tmp_path / "out", outputs))
    (found,) = read_npz(tmp_path / "out" / "000.npz").values()
    np.testing.assert_array_equal(found, x / 2 if outputs else -x / 2)
