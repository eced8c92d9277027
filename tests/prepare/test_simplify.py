"""Simplification: exact, the same on both ways into onnxsim, and blind to weights it has no use for."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare import onnxsim_core, rewrites, shapes, simplify
from qnn.prepare.canonical import sort_graph
from qnn.prepare.load import load
from qnn.prepare.onnxsim_core import Simplifier
from qnn.prepare.weights import is_far
from tests.prepare.graphs import model, node, noise, operators, prepared, run, saved, specs, value

SIDE = 160


def linear(second: str = "w") -> ModelProto:
    """x·w + (x·T(v)), both weights large; the Transpose of v can be folded."""
    return model(
        [
            node("MatMul", ["x", "w"], ["a"]),
            node("Transpose", ["v"], ["vt"], perm=[1, 0]),
            node("MatMul", ["x", "vt"], ["b"]),
            node("Identity", ["b"], ["b2"]),
            node("Add", ["a", "b2"], ["y"]),
        ],
        [value("x", ["n", SIDE])],
        [value("y", ["n", SIDE])],
        {"w": noise(SIDE, SIDE), "v": noise(SIDE, SIDE, seed=1)},
    )


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[ModelProto]:
    """The models onnxsim was shown."""
    seen: list[ModelProto] = []
    real = onnxsim_core.load_simplifier()

    def run_and_remember(given: ModelProto, skipped: Sequence[str], folded_bytes: int) -> ModelProto:
        copy = ModelProto()
        copy.CopyFrom(given)
        seen.append(copy)
        return real.run(given, skipped, folded_bytes)

    monkeypatch.setattr(simplify, "_simplifier", lambda: Simplifier(real.passes, run_and_remember))
    return seen


def test_only_foldable_weights_are_shown(tmp_path: Path, shown: list[ModelProto]) -> None:
    _, after = prepared(linear(), tmp_path, specs(x=(2, SIDE)))
    (given,) = shown
    assert [tensor.name for tensor in given.graph.initializer] == ["v"]
    assert [entry.name for entry in given.graph.input] == ["x", "w"]
    assert operators(after) == ["MatMul", "MatMul", "Add"]
    feeds = {"x": noise(2, SIDE, seed=2)}
    # ONNX Runtime packs constant weights and then adds in another order, so the sums differ though the weights do not.
    np.testing.assert_allclose(run(after, feeds)[0], run(linear(), feeds)[0], atol=1e-4)
    assert sorted(tensor.raw_data for tensor in after.graph.initializer) == sorted(
        [noise(SIDE, SIDE).tobytes(), noise(SIDE, SIDE, seed=1).T.tobytes()]
    )


def test_foldable_tensors_follow_chains_of_constants(tmp_path: Path) -> None:
    made = model(
        [
            node("Mul", ["a", "b"], ["ab"]),
            node("Add", ["ab", "c"], ["abc"]),
            node("DequantizeLinear", ["q", "scale"], ["w"]),
            node("MatMul", ["x", "w"], ["m"]),
            node("Add", ["m", "abc"], ["y"]),
        ],
        [value("x", [1, 2])],
        [value("y", None)],
        {"a": noise(2), "b": noise(2), "c": noise(2), "q": np.ones((2, 2), np.int8), "scale": np.float32(1)},
    )
    assert simplify.foldable_tensors(made) == {"a", "b", "c", "ab"}


def test_quantized_weights_are_not_folded(tmp_path: Path) -> None:
    made = model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
            node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
            node("DequantizeLinear", ["q", "s"], ["w"]),
            node("MatMul", ["xd", "w"], ["y"]),
        ],
        [value("x", [1, 2])],
        [value("y", None)],
        {"q": np.array([[1, 2], [3, 4]], np.int8), "s": np.float32(0.5), "z": np.uint8(0)},
    )
    _, after = prepared(made, tmp_path, specs(x=(1, 2)))
    assert sorted(operators(after)) == ["DequantizeLinear", "DequantizeLinear", "MatMul", "QuantizeLinear"]
    assert TensorProto.INT8 in {tensor.data_type for tensor in after.graph.initializer}


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Conv", ["x", "w"], ["c"]), node("BatchNormalization", ["c", "s", "b", "m", "v"], ["y"])],
        [node("Conv", ["x", "w"], ["c"]), node("Add", ["c", "k"], ["y"])],
        [node("Mul", ["x", "k2"], ["c"]), node("Conv", ["c", "w"], ["y"])],
        [node("Softmax", ["x"], ["s1"], axis=1), node("ArgMax", ["s1"], ["y"], axis=1)],
        [node("Softmax", ["x"], ["s1"], axis=1), node("Log", ["s1"], ["y"])],
        [node("Pad", ["x", "pads"], ["p"]), node("AveragePool", ["p"], ["y"], kernel_shape=[2, 2])],
    ],
    ids=["batch norm", "bias", "scale", "argmax", "log softmax", "pad and pool"],
)
def test_passes_that_change_rounding_or_ties_do_not_run(tmp_path: Path, nodes: list[NodeProto]) -> None:
    made = model(
        nodes,
        [value("x", [1, 3, 4, 4])],
        [value("y", None, TensorProto.INT64 if nodes[-1].op_type == "ArgMax" else TensorProto.FLOAT)],
        {
            "w": noise(2, 3, 1, 1),
            "s": noise(2),
            "b": noise(2),
            "m": noise(2),
            "v": np.abs(noise(2)) + 1,
            "k": noise(1, 2, 1, 1),
            "k2": noise(1, 3, 1, 1),
            "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        },
    )
    off = dict.fromkeys(rewrites.names(), False)
    _, after = prepared(made, tmp_path, specs(x=(1, 3, 4, 4)), rewrites=off)
    assert operators(after) == [entry.op_type for entry in nodes]
    feeds = {"x": noise(1, 3, 4, 4, seed=5)}
    np.testing.assert_array_equal(run(after, feeds)[0], run(made, feeds)[0])


def test_a_matmul_with_bias_is_not_wrapped_in_reshapes(tmp_path: Path) -> None:
    made = model(
        [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["y"])],
        [value("x", [1, 5, 4])],
        [value("y", None)],
        {"w": noise(4, 3), "b": noise(3)},
    )
    _, after = prepared(made, tmp_path, specs(x=(1, 5, 4)))
    assert operators(after) == ["MatMul", "Add"]


def test_every_allowed_pass_exists() -> None:
    """A pass that onnxsim renames would silently stop to run."""
    assert set(onnxsim_core.load_simplifier().passes) >= simplify.PASSES


def test_what_onnxsim_cannot_do_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(given: ModelProto, skipped: Sequence[str], folded_bytes: int) -> ModelProto:
        raise RuntimeError("cannot\ndo it")

    monkeypatch.setattr(simplify, "_simplifier", lambda: Simplifier((), fail))
    facts, after = prepared(linear(), tmp_path, specs(x=(2, SIDE)))
    assert ("not-simplified", "cannot do it") in {(change.kind, change.detail) for change in facts.changes}
    assert operators(after) == ["MatMul", "Transpose", "MatMul", "Identity", "Add"]
    assert len(after.graph.initializer) == 2


@pytest.mark.parametrize("part", ["input", "output"])
def test_a_result_with_another_border_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    def rename(given: ModelProto, skipped: Sequence[str], folded_bytes: int) -> ModelProto:
        other = ModelProto()
        other.CopyFrom(given)
        getattr(other.graph, part)[0].name = "renamed"
        return other

    monkeypatch.setattr(simplify, "_simplifier", lambda: Simplifier((), rename))
    facts, _ = prepared(linear(), tmp_path, specs(x=(2, SIDE)))
    assert [str(tensor) for tensor in (*facts.inputs, *facts.outputs)] == [
        f"x float32[2,{SIDE}]",
        f"y float32[2,{SIDE}]",
    ]
    assert "not-simplified" in {change.kind for change in facts.changes}


def test_both_ways_into_onnxsim_agree(tmp_path: Path) -> None:
    made = load(saved(linear(), tmp_path))
    shapes.fix_inputs(made, specs(x=(2, SIDE)), {})
    sort_graph(made)
    given = simplify._as_shown(shapes.infer(made))
    results = []
    for way in (onnxsim_core.load_simplifier(), onnxsim_core.public_simplifier()):
        skipped = [name for name in way.passes if name not in simplify.PASSES]
        result = way.run(given, skipped, simplify.FOLDED_BYTES)
        del result.metadata_props[:]
        results.append(result.SerializeToString(deterministic=True))
    assert results[0] == results[1]


@pytest.mark.parametrize("version", ["0.9.0", importlib.metadata.version("onnxsim")])
def test_the_light_way_is_for_tested_versions_only(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
    chosen = onnxsim_core.load_simplifier().run.__qualname__
    assert chosen.startswith("public_simplifier" if version == "0.9.0" else "_light_simplifier")


def test_an_unexpected_interface_is_not_used() -> None:
    class Core:
        ModelExecutor = object

        @staticmethod
        def _list_optimizers() -> list[str]:
            return []

        @staticmethod
        def simplify() -> None:
            """simplify(executor: E, model_bytes: bytes, something_new: bool) -> bytes"""

    assert not onnxsim_core._is_expected(Core)


def test_the_light_way_does_not_import_onnxsim() -> None:
    """And a later import of onnxsim shares the extension: a second copy in one process breaks it."""
    code = (
        "import sys; from qnn.prepare import onnxsim_core; onnxsim_core.load_simplifier();"
        "assert 'onnxsim' not in sys.modules;"
        "import onnxsim; from onnxsim import onnxsim_cpp2py_export as core;"
        "assert core is sys.modules[onnxsim_core._MODULE]"
    )
    subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", code], check=True)


def test_far_weights_are_still_far_behind_the_simplifier(tmp_path: Path) -> None:
    made = load(saved(linear(), tmp_path))
    shapes.fix_inputs(made, specs(x=(2, SIDE)), {})
    sort_graph(made)
    after, _ = simplify.simplify(made)
    assert {tensor.name: is_far(tensor) for tensor in after.graph.initializer}["w"]
