"""A model of two graphs, built and verified one after the other through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.e2e.conftest import Run, Workshop, conv_net, save

YAML = """\
name: toy
version: "1.0"
summary: Two small networks for tests.
task: test
licence: {spdx: MIT}
sources:
  find: {local: find.onnx}
  read: {local: read.onnx}
graphs:
  find: {source: find, inputs: {x: [1, 3, 16, 16]}}
  read: {source: read, inputs: {features: [1, 8]}}
precisions: [fp16]
targets: {socs: [public]}
checks:
  data: data.py:samples
"""
CHAIN = """\
  chain:
    feed: chain.py:feed
    rounds: 2
    metric: chain.py:evaluate
    metrics: {best: equal, total: {max: 100}}
"""
DATA = """\
import numpy as np


def samples(*, graph, inputs, sources, count):
    (shape,) = inputs.values()
    for number in range(count):
        values = np.random.default_rng(number).normal(0, 1, shape).astype(np.float32)
        yield {name: values for name in inputs}
"""
FEED = """\
import numpy as np


def feed(*, graph, turn, inputs, runs, sources):
    before = runs["find" if graph == "read" else "read"][-1][1]
    if graph == "read":
        yield {"features": before["y"].reshape(1, 8)}
        yield {"features": before["y"].reshape(1, 8) * 2}
    else:
        yield {"x": np.full(inputs["x"], before["z"].mean(), np.float32)}


def evaluate(*, runs, reference, sources):
    assert len(runs["read"]) == len(reference["read"]) == 4
    last = runs["read"][-1][1]["z"]
    return {"best": int(last.argmax()), "total": float(last.sum())}
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The model, pinned. Its compiled graphs stay in the store from test to test."""
    shop = Workshop(tmp_path_factory.mktemp("pair"))
    shop.model.mkdir(parents=True)
    conv_net(shop.model / "find.onnx", size=16)
    weights = numpy_helper.from_array(np.random.default_rng(2).normal(0, 1, (8, 4)).astype(np.float32), "w")
    gemm = helper.make_node("MatMul", ["features", "w"], ["z"])
    save(shop.model / "read.onnx", [gemm], {"features": [1, 8]}, {"z": [1, 4]}, [weights])
    (shop.model / "data.py").write_text(DATA)
    (shop.model / "chain.py").write_text(FEED)
    (shop.model / "model.yaml").write_text(YAML + CHAIN)
    pinned = shop.forge("pin", "toy")
    assert pinned.code == 0, pinned.err
    return shop


def build(shop: Workshop, *, chain: str = CHAIN, feed: str = FEED) -> Run:
    """Build for one chip with another chain; the pins stay."""
    file, end = shop.model / "model.yaml", "  data: data.py:samples\n"
    file.write_text(file.read_text().partition(end)[0] + end + chain)
    (shop.model / "chain.py").write_text(feed)
    return shop.build("--soc", "SM8650", "--out", str(shop.dist))


def manifest(shop: Workshop) -> dict[str, Any]:
    (path,) = Path(shop.dist).glob("*/manifest.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_the_chain_is_measured_and_stands_in_the_manifest_and_the_results(pair: Workshop) -> None:
    run = build(pair)
    assert run.code == 0, run.err
    chain = manifest(pair)["chain"]
    assert chain["rounds"] == 2
    assert [(g["name"], g["float_runs"], g["htp_runs"]) for g in chain["graphs"]] == [("find", 2, 2), ("read", 4, 4)]
    assert all(output["cosine"] > 0.999 for graph in chain["graphs"] for output in graph["numerics"])
    best, total = chain["metrics"]
    assert (best["name"], best["equal"], best["gate"]) == ("best", 1, "equal")
    assert total["htp_value"] != total["float_value"]  # the chain ran on HTP's own numbers, which are rounded
    assert total["htp_value"] == pytest.approx(total["float_value"], rel=0.01)
    (target,) = run.document["targets"]
    assert [graph["name"] for graph in target["graphs"]] == ["find", "read", "chain"]
    assert "best" in target["graphs"][2]["metric"]
    assert target["graphs"][2]["cosine"] is None  # the metric judges; outputs may stand in another order
    again = build(pair)
    assert again.document["targets"][0]["reused"] is True


def test_a_graph_that_is_fed_another_layout_is_an_error_that_names_both(pair: Workshop) -> None:
    run = build(pair, feed=FEED.replace('np.full(inputs["x"], ', "np.full((1, 16, 16, 3), "))
    assert run.code == 8
    (error,) = [target["error"] for target in run.document["targets"]]
    assert error["id"] == "QF650"
    assert "find, run 0: x has shape [1, 16, 16, 3], the graph takes [1, 3, 16, 16]" in error["message"]
    assert error["details"] == ["x has channels last where they belong first"]
    assert error["place"].startswith("models/toy/chain.py")


def test_a_chain_that_misses_its_gate_fails_the_bundle(pair: Workshop) -> None:
    run = build(pair, chain=CHAIN.replace("max: 100", "max: -100"))
    assert run.code == 8
    (error,) = [target["error"] for target in run.document["targets"]]
    assert error["id"] == "QF621"
    assert "the chain of toy-1.0-default-fp16 on SM8650" in error["message"]


def test_without_a_metric_the_last_graphs_own_gates_judge(pair: Workshop) -> None:
    bare = "  chain: {feed: chain.py:feed}\n"
    judged = build(pair, chain=bare)
    assert judged.code == 0
    assert judged.document["targets"][0]["graphs"][2]["cosine"] > 0.999
    assert manifest(pair)["chain"]["metrics"] == []
    run = build(pair, chain=f"  outputs: {{read: {{z: {{max_abs: 0.0}}}}}}\n{bare}")
    assert run.code == 8
    assert run.document["targets"][0]["error"]["id"] == "QF620"


def test_a_chain_that_finds_nothing_is_an_error(pair: Workshop) -> None:
    run = build(pair, feed=FEED.replace('    if graph == "read":\n', '    if graph == "read":\n        return\n'))
    assert run.document["targets"][0]["error"]["id"] == "QF651"
    assert "gave no inputs for read in round 0" in run.document["targets"][0]["error"]["message"]
