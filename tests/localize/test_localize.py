"""Planted faults, found with the real compiler and emulator through the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.e2e.conftest import Workshop, save

RANDOM = np.random.default_rng(5)

YAML = """\
name: toy
version: "1.0"
summary: A planted fault.
task: test
licence: {{spdx: MIT}}
sources:
  weights: {{local: model.onnx}}
graphs:
  net:
    source: weights
    inputs: {{x: [1, 8, 32]}}
precisions: [fp16]
targets: {{socs: [public]}}
checks: {{samples: samples/, count: {count}}}
"""


def weight(name: str, *shape: int, scale: float = 0.2) -> onnx.TensorProto:
    return numpy_helper.from_array(RANDOM.normal(0, scale, shape).astype(np.float32), name)


def number(name: str, value: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.float32(value), name)


def make(root: Path, nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto], samples: list[Any]) -> Workshop:
    """A model whose output is y [1,8,32]."""
    shop = Workshop(root)
    (shop.model / "samples").mkdir(parents=True)
    save(shop.model / "model.onnx", nodes, {"x": [1, 8, 32]}, {"y": [1, 8, 32]}, weights)
    for index, sample in enumerate(samples):
        np.savez(shop.model / "samples" / f"{index:03d}.npz", x=sample)
    (shop.model / "model.yaml").write_text(YAML.format(count=len(samples)))
    pinned = shop.forge("pin", "toy")
    assert pinned.code == 0, pinned.err
    return shop


def node(op: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [output], name=f"{output}_node", **attributes)


def normalised(axes: str) -> list[onnx.NodeProto]:
    """h divided by the root of the sum of its squares, and a layer behind it."""
    return [
        node("MatMul", ["x", "w0"], "h"),
        node("Mul", ["h", "h"], "square"),
        node("ReduceSum", ["square", axes], "sum", keepdims=1),
        node("Mul", ["sum", "fraction"], "mean"),
        node("Sqrt", ["mean"], "root"),
        node("Div", ["h", "root"], "unit"),
        node("MatMul", ["unit", "w1"], "y"),
    ]


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The second sample's sum of squares is 3.2e5 in the tokens 2 and 5, beyond fp16; the first's is small."""
    weights = [
        numpy_helper.from_array(np.eye(32, dtype=np.float32), "w0"),
        weight("w1", 32, 32),
        number("fraction", 1 / 32),
        numpy_helper.from_array(np.array([-1], np.int64), "axes"),
    ]
    small = RANDOM.normal(0, 1, (1, 8, 32)).astype(np.float32)
    large = small.copy()
    large[0, (2, 5)] = 100.0 * np.sign(small[0, (2, 5)])
    return make(tmp_path_factory.mktemp("squares"), normalised("axes"), weights, [small, large])


def test_a_sum_of_squares_beyond_fp16_is_named(squares: Workshop) -> None:
    run = squares.forge("localize", "toy", "--soc", "SM8650", "--without", "all", "--json")
    assert run.code == 0, run.err
    (graph,) = run.document["graphs"]
    assert graph["sample"] == 1
    (culprit,) = graph["culprits"]
    assert (culprit["tensor"], culprit["cause"], culprit["qnn"]) == ("sum", "node", ["ReduceSum"])
    assert [one["op"] for one in culprit["nodes"]] == ["ReduceSum"]
    assert culprit["seen"]["saturated"] == 2
    (spread,) = culprit["seen"]["spread"]
    assert (spread["axis"], spread["size"], spread["indices"]) == (1, 8, [2, 5])
    # The mean that is read from it is wrong with it; what is behind that is right with true values.
    assert [output["wrong"] for output in culprit["rest"]] == [""]


def test_with_its_rewrite_the_same_graph_is_right(squares: Workshop) -> None:
    run = squares.forge("localize", "toy", "--soc", "SM8650")
    assert run.code == 0, run.err
    assert "every output agrees with the same graph on the CPU" in run.out
    assert "compiling the whole graph (" in run.err


def test_an_exponential_of_minus_100_is_named_by_bisection_too(tmp_path: Path) -> None:
    layers = [node("MatMul", [f"t{i}" if i else "x", f"w{i}"], f"m{i}") for i in range(16)]
    layers = [step for i, layer in enumerate(layers) for step in (layer, node("Tanh", [f"m{i}"], f"t{i + 1}"))]
    tail = [
        node("Sub", ["t16", "hundred"], "low"),
        node("Exp", ["low"], "decay"),
        node("Add", ["t16", "decay"], "y"),
    ]
    weights = [weight(f"w{i}", 32, 32) for i in range(16)] + [number("hundred", 100.0)]
    shop = make(tmp_path, [*layers, *tail], weights, [RANDOM.normal(0, 1, (1, 8, 32)).astype(np.float32)])
    run = shop.forge("localize", "toy", "--soc", "SM8650", "--without", "clip-exp", "--bisect", "--json")
    assert run.code == 0, run.err
    (graph,) = run.document["graphs"]
    (culprit,) = graph["culprits"]
    assert (culprit["nodes"][0]["op"], culprit["cause"]) == ("Exp", "node")
    assert len(graph["steps"]) >= 1


def test_a_fault_of_the_compiler_is_named_when_its_rewrite_is_off(tmp_path: Path) -> None:
    """Resize to the nearest takes other neighbours than half_pixel with floor asks for (docs/faults.md)."""
    nodes = [
        node("MatMul", ["x", "w0"], "h"),
        node("Reshape", ["h", "four"], "picture"),
        node("Resize", ["picture", "", "scales"], "large", nearest_mode="floor"),
        node("MatMul", ["large", "w1"], "z"),
        node("MatMul", ["w2", "z"], "a"),
        node("Reshape", ["a", "three"], "y"),
    ]
    lists = {"four": [1, 2, 4, 32], "three": [1, 8, 32]}
    integers = [numpy_helper.from_array(np.array(values, np.int64), name) for name, values in lists.items()]
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")
    weights = [weight("w0", 32, 32), weight("w1", 64, 32), weight("w2", 4, 8), scales, *integers]
    sample = RANDOM.normal(0, 1, (1, 8, 32)).astype(np.float32)
    shop = make(tmp_path, nodes, weights, [sample])
    run = shop.forge("localize", "toy", "--soc", "SM8650", "--without", "resize-by-gather", "--json")
    assert run.code == 0, run.err
    (culprit,) = run.document["graphs"][0]["culprits"]
    assert (culprit["tensor"], culprit["nodes"][0]["op"], culprit["cause"]) == ("large", "Resize", "node")
    assert [output["wrong"] for output in culprit["rest"]] == [""]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--graph", "nett"), 8, "QF643"),
        (("--sample", "2"), 8, "QF644"),
        (("--without", "clip"), 2, "no rewrite is called 'clip'"),
        (("--bucket", "huge"), 4, "QF208"),
        (("--threshold", "1.5"), 2, "--threshold"),
    ],
)
def test_questions_that_have_no_answer(squares: Workshop, arguments: tuple[str, ...], code: int, words: str) -> None:
    run = squares.forge("localize", "toy", "--soc", "SM8650", *arguments)
    assert words in run.err
    assert "Traceback" not in run.err
    assert run.code == code


def test_a_graph_that_does_not_compile_is_said_so(tmp_path: Path) -> None:
    shop = make(tmp_path, [node("Erf", ["x"], "y")], [], [np.ones((1, 8, 32), np.float32)])
    run = shop.forge("localize", "toy", "--soc", "SM8650", "--without", "all")
    assert "QF641" in run.err
    assert run.code == 8


def test_a_crash_of_the_compiler_is_no_traceback(squares: Workshop) -> None:
    script = (
        "import sys; import qnn.localize.find as find\n"
        "find.MEASURE_JOB = 'tests.e2e.fake_compiler:segfault'\n"
        "from qnn.cli import run; sys.exit(run(sys.argv[1:]))\n"
    )
    environment = dict(
        os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p), QNN_FORGE_STORE=str(squares.store)
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "localize", "toy", "--soc", "SM8650", "--json"],
        cwd=squares.root, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 7
    assert "QF501" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == "" or json.loads(done.stdout)
