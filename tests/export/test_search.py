"""The first tensor of a file that is not PyTorch's is found, in the order in which the file computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from qnn.export.search import Found, NamesRequest, SearchRequest, search, write_names
from qnn.npz import write_npz

CHAIN = 70  # more than one run exposes at once


@pytest.fixture
def chain(tmp_path: Path) -> SearchRequest:
    """x, x+1, x+2 … as t0, t1 …, the last one the output; its weights in a file beside it."""
    nodes = [helper.make_node("Add", [f"t{n - 1}" if n else "x", "one"], [f"t{n}"]) for n in range(CHAIN)]
    one = onnx.numpy_helper.from_array(np.ones((1, 300), np.float32), "one")
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 300]) for name in ("x", f"t{CHAIN - 1}")]
    model = helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:], [one]), ir_version=10)
    model.opset_import[0].version = 20
    file = tmp_path / "net.onnx"
    onnx.save(model, file, save_as_external_data=True, location="net.onnx.data", size_threshold=0)
    request = SearchRequest(file, tmp_path / "x.npz", tmp_path / "names.json", tmp_path / "tensors")
    request.tensors.mkdir()
    write_npz(request.sample, {"x": np.zeros((1, 300), np.float32)})
    write_names(NamesRequest(file, request.names))
    return request


def keep(request: SearchRequest, place: int, value: NDArray[np.float32]) -> None:
    np.save(request.tensors / f"{place:05d}.npy", value)


def full(value: float) -> NDArray[np.float32]:
    return np.full((1, 300), value, np.float32)


def test_names_are_those_of_all_tensors_in_order(chain: SearchRequest) -> None:
    assert json.loads(chain.names.read_text()) == [f"t{n}" for n in range(CHAIN)]


def test_the_first_difference_is_found_beyond_the_first_batch(chain: SearchRequest) -> None:
    for place in range(CHAIN):
        keep(chain, place, full(place + 1 if place < 40 else place + 1.5))
    found = search(chain)
    assert (found.compared, found.name, found.operator) == (41, "t40", "Add")
    assert found.words.startswith("cosine 1.0000000, off by 0.5 at [0, 0]")


def test_tensors_that_torch_does_not_know_are_left_out(chain: SearchRequest) -> None:
    keep(chain, 3, full(4))
    keep(chain, 69, full(70))
    assert search(chain) == Found(2)
    keep(chain, 69, full(71))
    assert search(chain).name == "t69"


def test_nothing_to_compare_finds_nothing_and_leaves_nothing(chain: SearchRequest) -> None:
    assert search(chain) == Found(0)
    assert list(chain.tensors.iterdir()) == []
