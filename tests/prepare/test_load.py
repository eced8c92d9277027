"""Reading files that may be anything: named faults for what is no model, and no weight read without need."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

from qnn.errors.graphs import ExternalDataMissing, ExternalDataOutside, InvalidGraph, NotOnnx, TooNew
from qnn.prepare.load import load
from qnn.prepare.weights import is_far, span_of
from tests.prepare.graphs import model, node, noise, saved, value

SIDE = 160


def matmul() -> ModelProto:
    return model(
        [node("MatMul", ["x", "w"], ["y"])], [value("x", [1, SIDE])], [value("y", [1, SIDE])], {"w": noise(SIDE, SIDE)}
    )


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer"),
        (b"  <!DOCTYPE html><html></html>", "HTML"),
        (b"PK\x03\x04rest", "zip"),
        (b"\x1c\x00\x00\x00TFL3" + b"\0" * 40, "TensorFlow Lite"),
        (b"GGUF\x03\x00\x00\x00", "GGUF"),
        (b"\x40\0\0\0\0\0\0\0" + b'{"a": 1}' * 8, "safetensors"),
        (b"\x08\x08\x12\x04test", "no graph"),
        (b"hello world", "protobuf"),
    ],
)
def test_what_is_no_model_is_named(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(NotOnnx, match=word):
        load(path)


def test_half_a_download_is_called_cut_short(tmp_path: Path) -> None:
    path = saved(matmul(), tmp_path)
    path.write_bytes(path.read_bytes()[:50_000])
    with pytest.raises(NotOnnx, match="cut short"):
        load(path)


def test_large_weights_stay_in_the_file(tmp_path: Path) -> None:
    path = saved(matmul(), tmp_path)
    (weight,) = load(path).graph.initializer
    assert is_far(weight)
    span = span_of(weight)
    assert span.file == path
    assert path.read_bytes()[span.offset : span.offset + span.length] == noise(SIDE, SIDE).tobytes()


def test_typed_values_become_raw_ones(tmp_path: Path) -> None:
    made = matmul()
    made.graph.initializer.append(onnx.helper.make_tensor("t", TensorProto.INT64, [2], [3, 4]))
    (raw,) = [tensor for tensor in load(saved(made, tmp_path)).graph.initializer if tensor.name == "t"]
    assert raw.raw_data == np.array([3, 4], np.int64).tobytes()
    assert not raw.int64_data


def external(folder: Path, location: str = "model.data") -> Path:
    made = matmul()
    onnx.save(made, folder / "model.onnx", save_as_external_data=True, location="model.data", size_threshold=0)
    stored = onnx.load(folder / "model.onnx", load_external_data=False)
    stored.graph.initializer[0].external_data[0].value = location
    return saved(stored, folder, "model.onnx")


def test_external_weights_are_found_beside_the_model(tmp_path: Path) -> None:
    (weight,) = load(external(tmp_path)).graph.initializer
    span = span_of(weight)
    assert span.file == tmp_path / "model.data"
    assert (tmp_path / "model.data").read_bytes()[span.offset :][: span.length] == noise(SIDE, SIDE).tobytes()


def test_small_external_weights_are_read(tmp_path: Path) -> None:
    made = model([node("Add", ["x", "c"], ["y"])], [value("x", [4])], [value("y", [4])], {"c": noise(4)})
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (weight,) = load(tmp_path / "m.onnx").graph.initializer
    assert weight.raw_data == noise(4).tobytes()
    assert not weight.external_data


def test_missing_external_weights(tmp_path: Path) -> None:
    path = external(tmp_path)
    (tmp_path / "model.data").unlink()
    with pytest.raises(ExternalDataMissing, match=r"'w'.*'model\.data'"):
        load(path)


def test_short_external_weights(tmp_path: Path) -> None:
    path = external(tmp_path)
    os.truncate(tmp_path / "model.data", 5000)
    with pytest.raises(ExternalDataMissing, match="5000 bytes"):
        load(path)


@pytest.mark.parametrize("name", ["nowhere", "x" * 300, "y/" * 3000 + "z"])
def test_external_weights_in_a_file_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExternalDataMissing, match="not beside the model"):
        load(external(tmp_path, name))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, r"shape \[.*\] takes|are said to be"),
        ({"offset": "x"}, "no readable offset and length"),
        ({"offset": "0", "length": "9" * 30}, "are said to be 9{30} bytes"),
        ({"offset": "-8", "length": "8"}, "8 bytes from byte -8 on"),
    ],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_weights_said_to_be_in_the_model_file_itself(
    tmp_path: Path, absolute: bool, facts: dict[str, str], said: str
) -> None:
    """The reader leaves large weights there, and must not take the file's own words for its own."""
    path = external(tmp_path, str(tmp_path / "model.onnx") if absolute else "model.onnx")
    stored = onnx.load(path, load_external_data=False)
    del stored.graph.initializer[0].external_data[1:]
    for key, text in facts.items():
        entry = stored.graph.initializer[0].external_data.add()
        entry.key, entry.value = key, text
    path.write_bytes(stored.SerializeToString())
    with pytest.raises((InvalidGraph, ExternalDataMissing), match=said):
        load(path)


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "sub/../../secret", "link", ".", "a\0b"])
def test_external_weights_outside_the_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(SIDE * SIDE * 4))
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ExternalDataOutside, match="outside the model's folder"):
        load(external(folder, location))


def test_a_newer_ir_version(tmp_path: Path) -> None:
    made = matmul()
    made.ir_version = 99
    with pytest.raises(TooNew, match=r"IR 99 is newer than this runtime understands; the newest it knows is IR 1[0-9]"):
        load(saved(made, tmp_path))


def test_a_newer_opset(tmp_path: Path) -> None:
    made = matmul()
    made.opset_import[0].version = 99
    with pytest.raises(TooNew, match="opset 99 is newer than this runtime understands") as caught:
        load(saved(made, tmp_path))
    assert "convert_version" in caught.value.remedy


def test_the_newest_known_versions_load(tmp_path: Path) -> None:
    made = matmul()
    made.ir_version = onnx.IR_VERSION
    made.opset_import[0].version = onnx.defs.onnx_opset_version()
    assert load(saved(made, tmp_path)).ir_version == onnx.IR_VERSION


def test_no_opset_at_all(tmp_path: Path) -> None:
    made = matmul()
    del made.opset_import[:]
    with pytest.raises(InvalidGraph, match="imports no opset"):
        load(saved(made, tmp_path))


@pytest.mark.parametrize("dims", [[SIDE, SIDE + 1], [-SIDE, -SIDE], [3]])
def test_weights_of_another_size_than_their_shape(tmp_path: Path, dims: list[int]) -> None:
    made = matmul()
    made.graph.initializer[0].dims[:] = dims
    with pytest.raises(InvalidGraph, match="'w' are damaged"):
        load(saved(made, tmp_path))


def test_names_that_are_no_text(tmp_path: Path) -> None:
    data = matmul().SerializeToString().replace(b"MatMul_y", b"Mat\xff\xfe\xfd_y")
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(NotOnnx, match="no text"):
        load(path)
