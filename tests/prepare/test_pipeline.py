"""The whole of preparation: the same bytes for the same graph, the facts beside it, errors through a child process."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper

from qnn.child import Host, Limits
from qnn.errors import ForgeError
from qnn.errors.graphs import NotOnnx, PreparationDamaged
from qnn.prepare.prepared import Change, PreparedGraph, load_prepared, save_prepared
from qnn.prepare.request import PrepareRequest
from qnn.tensors import TensorSpec
from tests.prepare.graphs import model, node, noise, prepared, run, saved, specs, value
from tests.prepare.test_canonical import shuffled


def network() -> ModelProto:
    """Shape arithmetic, constants, a function operator, a large weight: something of everything."""
    return model(
        [
            node("Shape", ["x"], ["shape"]),
            node("Constant", [], ["one"], value=onnx.numpy_helper.from_array(np.array([-1]))),
            node("Gather", ["shape", "first"], ["n"]),
            node("Concat", ["n", "one"], ["flat"], axis=0),
            node("Reshape", ["x", "flat"], ["r"]),
            node("MatMul", ["r", "w"], ["m"]),
            node("Mish", ["m"], ["mish"]),
            node("Dropout", ["mish"], ["d"]),
            node("Add", ["d", "m"], ["y"]),
            node("Neg", ["m"], ["dead"]),
        ],
        [value("x", ["n", 8, 20])],
        [value("y", ["n", 160])],
        {"first": np.array([0]), "w": noise(160, 160)},
        opset=18,
    )


def decorated(made: ModelProto) -> ModelProto:
    """The same graph with everything in it that does not compute."""
    copy = ModelProto()
    copy.CopyFrom(made)
    copy.producer_name, copy.producer_version, copy.model_version = "tool", "1.2", 7
    copy.doc_string = copy.graph.doc_string = "notes"
    copy.graph.name = "another name"
    for owner in (copy, copy.graph, copy.graph.node[0], copy.graph.initializer[0], copy.graph.input[0]):
        entry = owner.metadata_props.add()
        entry.key, entry.value = "author", "someone"
    copy.graph.node[1].doc_string = copy.graph.initializer[1].doc_string = "why"
    copy.graph.initializer.append(onnx.numpy_helper.from_array(noise(3), "unused"))
    copy.graph.value_info.append(value("m", [9, 160]))
    copy.graph.quantization_annotation.add().tensor_name = "m"
    copy.training_info.add()
    copy.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return copy


@pytest.mark.parametrize("seed", range(4))
def test_the_same_graph_gives_the_same_bytes(tmp_path: Path, seed: int) -> None:
    facts, _ = prepared(network(), tmp_path, specs(x=("n", 8, 20)), {"n": 2}, output="one")
    other = tmp_path / "elsewhere" / "deep"
    other.mkdir(parents=True)
    source = saved(shuffled(decorated(network()), seed), other, "renamed.onnx")
    again, _ = prepared(source, tmp_path, specs(x=("n", 8, 20)), {"n": 2}, output="two")
    assert (tmp_path / "one" / "net.onnx").read_bytes() == (tmp_path / "two" / "net.onnx").read_bytes()
    assert (facts.inputs, facts.outputs, facts.opsets, facts.ir) == (
        again.inputs,
        again.outputs,
        again.opsets,
        again.ir,
    )


def test_nothing_of_the_machine_is_in_the_files(tmp_path: Path) -> None:
    prepared(decorated(network()), tmp_path, specs(x=(2, 8, 20)))
    for path in (tmp_path / "out").iterdir():
        content = path.read_bytes()
        assert str(tmp_path).encode() not in content
        assert not any(word in content for word in (b"author", b"someone", b"notes", b"tool", b"onnxsim."))


def test_the_prepared_graph_computes_the_same_and_is_valid(tmp_path: Path) -> None:
    facts, after = prepared(network(), tmp_path, specs(x=(2, 8, 20)))
    onnx.checker.check_model(after, full_check=True)
    feeds = {"x": noise(2, 8, 20, seed=4)}
    np.testing.assert_allclose(run(after, feeds)[0], run(network(), feeds)[0], rtol=1e-6, atol=1e-6)
    assert (facts.nodes_before, facts.nodes_after) == (10, len(after.graph.node))
    assert [entry.op_type for entry in after.graph.node] == [
        "Reshape",
        "MatMul",
        "Clip",
        "Softplus",
        "Tanh",
        "Mul",
        "Add",
    ]
    assert {entry.name for entry in after.graph.value_info} == {
        name for entry in after.graph.node for name in entry.output
    } - {"y"}


def test_two_buckets_of_one_source(tmp_path: Path) -> None:
    for size in (1, 3):
        facts, _ = prepared(network(), tmp_path, specs(x=("n", 8, 20)), {"n": size}, output=f"b{size}")
        assert facts.outputs == (TensorSpec("y", "float32", (size, 160)),)
        assert load_prepared(tmp_path / f"b{size}").bucket == {"n": size}


def test_a_model_over_the_limit_is_two_files(tmp_path: Path) -> None:
    """110 MB of weights: none of it passes through protobuf, and the compiler can map it."""
    side = 5300
    made = model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["n", side])],
        [value("y", None)],
        {"w": np.zeros((side, side), np.float32)},
    )
    source = saved(made, tmp_path)
    (tmp_path / "out").mkdir()
    with closing(Host()) as host:
        facts = host.call(
            "qnn.prepare.pipeline:prepare",
            PrepareRequest(source, "net", specs(x=(1, side)), {}, tmp_path / "out"),
            log=tmp_path / "log",
            limits=Limits(seconds=60, memory_bytes=8 << 30),
        )
        assert host.usage.peak_bytes < 160 << 20
    assert facts.files == ("net.onnx", "net.onnx.data")
    assert (tmp_path / "out" / "net.onnx.data").stat().st_size == side * side * 4
    assert (tmp_path / "out" / "net.onnx").stat().st_size < 1000


def facts() -> PreparedGraph:
    return PreparedGraph(
        graph="net",
        files=("net.onnx",),
        bucket={"n": 2},
        inputs=(TensorSpec("x", "int32", (2, 3)), TensorSpec("s", "float32", ())),
        outputs=(TensorSpec("выход", "bool", (1,)),),
        changes=(Change("cast-input", "x", "int64 becomes int32"),),
        unused_inputs=("s",),
        constant_outputs=(),
        nodes_before=3,
        nodes_after=2,
        opsets={"": 17},
        ir=8,
    )


def test_facts_survive_the_file_and_the_pipe(tmp_path: Path) -> None:
    save_prepared(facts(), tmp_path)
    assert load_prepared(tmp_path) == facts()
    assert pickle.loads(pickle.dumps(facts())) == facts()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"graph": "net"}', '{"graph": 1, "files": 3}', "null"])
def test_damaged_facts(tmp_path: Path, content: str) -> None:
    (tmp_path / "prepared.json").write_text(content)
    with pytest.raises(PreparationDamaged):
        load_prepared(tmp_path)


def test_missing_facts(tmp_path: Path) -> None:
    with pytest.raises(PreparationDamaged):
        load_prepared(tmp_path)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with closing(Host()) as running:
        yield running


def call(host: Host, source: Path, output: Path) -> PreparedGraph:
    output.mkdir(exist_ok=True)
    request = PrepareRequest(source, "net", specs(x=("n", 8, 20)), {"n": 2}, output)
    made: PreparedGraph = host.call(
        "qnn.prepare.pipeline:prepare", request, log=output / "log", limits=Limits(seconds=30, memory_bytes=2 << 30)
    )
    return made


def fault_of(host: Host, source: Path, output: Path) -> ForgeError | None:
    try:
        made = call(host, source, output)
    except ForgeError as error:
        return error
    assert load_prepared(output) == made
    return None


def test_errors_cross_the_process(host: Host, tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"<html>")
    with pytest.raises(NotOnnx, match="HTML"):
        call(host, tmp_path / "bad.onnx", tmp_path / "out")
    assert not (tmp_path / "out" / "prepared.json").exists()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


SMALL = network()
SMALL.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(noise(160, 2), "w"))
CONTENT = SMALL.SerializeToString()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    length=st.one_of(st.none(), st.integers(0, len(CONTENT))),
)
def test_a_damaged_model_is_an_error_or_a_crash_of_the_child(
    host: Host, scratch: Path, changes: list[tuple[int, int]], length: int | None
) -> None:
    content = bytearray(CONTENT)
    for position, byte in changes:
        content[position] = byte
    (scratch / "m.onnx").write_bytes(content[:length])
    fault = fault_of(host, scratch / "m.onnx", scratch / "out")
    # A crash of native code is the child's end; an exception there is a fault of this package.
    assert fault is None or fault.id.startswith("QF4") or "killed by" in fault.message or fault.id == "QF502", (
        fault.lines()
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400))
def test_arbitrary_bytes_are_no_model(host: Host, scratch: Path, content: bytes) -> None:
    (scratch / "m.onnx").write_bytes(content)
    with pytest.raises(ForgeError) as caught:
        call(host, scratch / "m.onnx", scratch / "out")
    assert caught.value.id.startswith("QF4")
