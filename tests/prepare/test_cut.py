"""Cutting a graph at named tensors: the reference and the prepared graph give the same ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qnn.errors.rewrites import UnknownTensor
from qnn.npz import read_npz, write_npz
from qnn.prepare.pipeline import prepare
from qnn.prepare.request import PrepareRequest
from qnn.verify.reference import ReferenceRequest, reference
from tests.prepare.graphs import INT64, model, node, noise, run, saved, specs, value


def detector(folder: Path) -> Path:
    """Boxes and scores, then NonMaxSuppression: its size depends on the data, which no chip can do."""
    made = model(
        [
            node("MatMul", ["x", "w"], ["raw"]),
            node("Relu", ["raw"], ["boxes"]),
            node("Sigmoid", ["raw"], ["s"]),
            node("Slice", ["s", "zero", "one", "two"], ["part"]),
            node("Transpose", ["part"], ["scores"], perm=[0, 2, 1]),
            node("NonMaxSuppression", ["boxes", "scores", "most"], ["kept"]),
        ],
        [value("x", [1, 6, 4])],
        [value("kept", ["n", 3], INT64)],
        {"w": noise(4, 4), "zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "most": np.array([3])},
    )
    return saved(made, folder)


def request(source: Path, folder: Path, *outputs: str) -> PrepareRequest:
    (folder / "out").mkdir()
    return PrepareRequest(source, "net", specs(x=[1, 6, 4]), {}, folder / "out", outputs=outputs)


def test_cut_graph_gives_the_named_tensors(tmp_path: Path) -> None:
    source = detector(tmp_path)
    facts = prepare(request(source, tmp_path, "scores", "boxes"))
    assert [(tensor.name, tensor.shape) for tensor in facts.outputs] == [("scores", (1, 1, 6)), ("boxes", (1, 6, 4))]
    assert "cut: scores, boxes: outputs of the graph, in place of kept" in [str(change) for change in facts.changes]
    x = noise(1, 6, 4, seed=1)
    write_npz(tmp_path / "000.npz", {"x": x})
    result = reference(ReferenceRequest(source, (tmp_path / "000.npz",), tmp_path, ("scores", "boxes")))
    truth = read_npz(result.files[0])
    assert list(truth) == ["scores", "boxes"]
    for name, got in zip(truth, run(tmp_path / "out" / "net.onnx", {"x": x}), strict=True):
        np.testing.assert_array_equal(got, truth[name])


def test_whole_graph_is_refused_for_its_dynamic_tail(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="depends on the data"):
        prepare(request(detector(tmp_path), tmp_path))


def test_unknown_tensor_is_named_with_those_like_it(tmp_path: Path) -> None:
    with pytest.raises(UnknownTensor, match="'score'") as caught:
        prepare(request(detector(tmp_path), tmp_path, "score"))
    assert "scores" in caught.value.details[0]


def test_constant_is_no_place_to_cut(tmp_path: Path) -> None:
    with pytest.raises(UnknownTensor):
        prepare(request(detector(tmp_path), tmp_path, "w"))
