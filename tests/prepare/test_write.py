"""Writing: one file or two, the same model either way, and the same bytes wherever the weights were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from qnn.prepare.load import load
from qnn.prepare.weights import is_far
from qnn.prepare.write import write_model
from tests.prepare.graphs import model, node, noise, run, saved, value

SIDE = 161


def chain() -> ModelProto:
    constants = {"w1": noise(SIDE, SIDE), "small": noise(SIDE), "w2": noise(SIDE, SIDE + 1, seed=1)}
    return model(
        [node("MatMul", ["x", "w1"], ["a"]), node("Add", ["a", "small"], ["b"]), node("MatMul", ["b", "w2"], ["y"])],
        [value("x", [1, SIDE])],
        [value("y", [1, SIDE + 1])],
        constants,
    )


def test_inline_and_external_hold_the_same_model(tmp_path: Path) -> None:
    loaded = load(saved(chain(), tmp_path))
    feeds = {"x": noise(1, SIDE)}
    expected = run(chain(), feeds)[0]
    for limit, files in ((10**9, ("m.onnx",)), (100_000, ("m.onnx", "m.onnx.data"))):
        folder = tmp_path / str(limit)
        folder.mkdir()
        assert write_model(loaded, "m", folder, inline_bytes=limit) == files
        assert sorted(path.name for path in folder.iterdir()) == sorted(files)
        onnx.checker.check_model(str(folder / "m.onnx"), full_check=True)
        np.testing.assert_array_equal(run(folder / "m.onnx", feeds)[0], expected)
        got = {
            tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "m.onnx").graph.initializer
        }
        for tensor in chain().graph.initializer:
            np.testing.assert_array_equal(got[tensor.name], onnx.numpy_helper.to_array(tensor))


def test_external_weights_are_aligned_and_named_without_a_path(tmp_path: Path) -> None:
    write_model(load(saved(chain(), tmp_path)), "m", tmp_path, inline_bytes=0)
    written = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    facts = {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data}
        for tensor in written.graph.initializer
        if is_far(tensor)
    }
    assert set(facts) == {"w1", "w2"}
    assert all(entry["location"] == "m.onnx.data" and int(entry["offset"]) % 4096 == 0 for entry in facts.values())


def test_bytes_do_not_depend_on_where_the_weights_were(tmp_path: Path) -> None:
    inline = saved(chain(), tmp_path, "inline.onnx")
    onnx.save(chain(), tmp_path / "external.onnx", save_as_external_data=True, location="other.data", size_threshold=0)
    made = []
    for name, limit in (("a", 10**9), ("b", 0)):
        for source in (inline, tmp_path / "external.onnx"):
            folder = tmp_path / f"{name}-{source.stem}"
            folder.mkdir()
            files = write_model(load(source), "m", folder, inline_bytes=limit)
            made.append([(folder / file).read_bytes() for file in files])
    assert made[0] == made[1]
    assert made[2] == made[3]
