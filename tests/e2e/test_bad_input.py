"""Bad input through the public command: one clear error with its id, its exit code, nothing half-written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.e2e.conftest import YAML, Workshop, conv_net, save


def yaml(shop: Workshop, old: str, new: str) -> None:
    path = shop.model / "model.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def garbled(shop: Workshop) -> None:
    (shop.model / "model.yaml").write_text("name: toy\n\tversion: [1\n")


def missing(shop: Workshop) -> None:
    (shop.model / "model.yaml").unlink()


def wrong_type(shop: Workshop) -> None:
    yaml(shop, "precisions: [fp16]", "precisions: fp16")


def unknown_chip_in_yaml(shop: Workshop) -> None:
    yaml(shop, "socs: [public]", "socs: [SM8651]")


def truncated_source(shop: Workshop) -> None:
    path = shop.model / "model.onnx"
    path.write_bytes(path.read_bytes()[:-20])


def escaping_source(shop: Workshop) -> None:
    yaml(shop, "local: model.onnx", "local: ../../../etc/passwd")


def repin(shop: Workshop) -> None:
    (shop.model / "model.yaml").write_text(YAML.format(extra=""))
    assert shop.forge("pin", "toy").code == 0


def not_onnx(shop: Workshop) -> None:
    (shop.model / "model.onnx").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    repin(shop)


def open_dimension(shop: Workshop) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node("Cast", ["n"], ["y"], to=TensorProto.FLOAT)]
    save(shop.model / "model.onnx", nodes, {"x": [1, 3, "size", "size"]}, {"y": [4, "found"]}, [])
    repin(shop)


def branch(shop: Workshop) -> None:
    """A condition that depends on the input, and branches of different shapes, so that preparation cannot choose."""
    arms = []
    for name, op in (("then", "Relu"), ("else", "GlobalMaxPool")):
        output = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)
        arms.append(helper.make_graph([helper.make_node(op, ["x"], [f"{name}_y"])], name, [], [output]))
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["flag"], to=TensorProto.BOOL),
        helper.make_node("If", ["flag"], ["y"], name="the_branch", then_branch=arms[0], else_branch=arms[1]),
    ]
    save(shop.model / "model.onnx", nodes, {"x": [1, 3, "size", "size"]}, {"y": [1, 3, "rows", "columns"]}, [])
    repin(shop)


def int64_input(shop: Workshop) -> None:
    """An int64 input that model.yaml does not speak of."""
    conv_net(shop.model / "model.onnx")
    model = onnx.load(shop.model / "model.onnx")
    model.graph.input.append(helper.make_tensor_value_info("step", TensorProto.INT64, [1]))
    onnx.save(model, shop.model / "model.onnx")
    repin(shop)


def edit(shop: Workshop, change: Callable[[onnx.ModelProto], None]) -> None:
    path = shop.model / "model.onnx"
    model = onnx.load(path)
    change(model)
    onnx.save(model, path)
    repin(shop)


def nan_weights(shop: Workshop) -> None:
    def change(model: onnx.ModelProto) -> None:
        weights = numpy_helper.to_array(model.graph.initializer[0]).copy()
        weights[7, 2, 1, 0] = np.nan
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "w"))

    edit(shop, change)


def newer_opset(shop: Workshop) -> None:
    def change(model: onnx.ModelProto) -> None:
        model.opset_import[0].version = 99

    edit(shop, change)


def external_weights(location: str) -> Callable[[Workshop], None]:
    """Weights in a file of their own that is not beside the model."""

    def harm(shop: Workshop) -> None:
        def change(model: onnx.ModelProto) -> None:
            weights = model.graph.initializer[0]
            onnx.external_data_helper.set_external_data(weights, location, offset=0, length=len(weights.raw_data))
            weights.ClearField("raw_data")

        edit(shop, change)

    return harm


def unresolvable_requires(shop: Workshop) -> None:
    data_code("    yield {'x': np.zeros((1, 3, 16, 16), np.float32)}")(shop)
    yaml(shop, "  count: 2\n", "  count: 1\nrequires: [qnn-forge-no-such-package==1.0]\n")


def data_code(body: str) -> Callable[[Workshop], None]:
    def write(shop: Workshop) -> None:
        (shop.model / "data.py").write_text(
            f"import numpy as np\n\n\ndef samples(*, graph, inputs, sources, count):\n{body}\n"
        )
        yaml(shop, "samples: samples/", "data: data.py:samples")

    return write


def metric_that_raises(shop: Workshop) -> None:
    (shop.model / "metric.py").write_text(
        "def evaluate(*, graph, inputs, outputs, reference, sources):\n    return {'x': 1 / 0}\n"
    )
    yaml(shop, "  count: 2\n", "  count: 2\n  metric: metric.py:evaluate\n  metrics: {net: {x: equal}}\n")


def samples_of_another_shape(shop: Workshop) -> None:
    np.savez(shop.model / "samples" / "000.npz", x=np.zeros((1, 3, 8, 8), np.float32))


def samples_of_another_name(shop: Workshop) -> None:
    np.savez(shop.model / "samples" / "001.npz", image=np.zeros((1, 3, 16, 16), np.float32))


@pytest.mark.parametrize(
    ("harm", "code", "id_", "says"),
    [
        (garbled, 3, "QF005", "model.yaml:2:1"),
        (missing, 3, "QF001", "models/toy"),
        (wrong_type, 3, "QF022", "model.yaml:15:13"),
        (unknown_chip_in_yaml, 3, "QF140", "SM8651"),
        (truncated_source, 5, "QF", "models/toy/model.yaml"),
        (escaping_source, 3, "QF107", "model.yaml:7:"),
        (not_onnx, 6, "QF401", "models/toy/model.yaml"),
        (open_dimension, 6, "QF4", "y"),
        (branch, 6, "QF4", "the_branch"),
        (int64_input, 6, "QF4", "step"),
        (nan_weights, 6, "QF415", "'w' hold 1 of 216 values that are NaN or infinite, the first at [7, 2, 1, 0]"),
        (newer_opset, 6, "QF404", "opset 99"),
        (external_weights("model.data"), 6, "QF402", "'w' are in 'model.data'"),
        (external_weights("../../../etc/passwd"), 6, "QF403", "'w' are said to be in '../../../etc/passwd'"),
        (unresolvable_requires, 10, "QF820", "qnn-forge-no-such-package==1.0"),
        (data_code("    yield {'image': np.zeros((1, 3, 16, 16), np.float32)}"), 10, "QF807", "data.py"),
        (data_code("    yield {'x': np.zeros((1, 3, 8, 8), np.float32)}"), 10, "QF808", "data.py"),
        (data_code("    yield {'x': np.zeros((1, 3, 16, 16))}"), 10, "QF809", "float64"),
        (data_code("    raise ValueError('no such image')"), 10, "QF802", "data.py:5"),
        (metric_that_raises, 10, "QF802", "metric.py:2"),
        (samples_of_another_shape, 10, "QF808", "000.npz"),
        (samples_of_another_name, 10, "QF807", "001.npz"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_bad_input(workshop: Workshop, harm: Callable[[Workshop], None], code: int, id_: str, says: str) -> None:
    harm(workshop)
    run = workshop.forge("build", "toy", "--soc", "SM8650", env={"PIP_NO_INDEX": "1"})
    assert run.code == code, run.err
    assert id_ in run.err
    assert says in run.err
    assert "remedy:" in run.err
    assert "Traceback" not in run.err
    assert not list(workshop.dist.glob("toy*"))
    assert not list((workshop.store / "tmp").glob("*"))


@pytest.mark.parametrize(
    ("chip", "id_", "says"),
    [
        ("SM8651", "QF201", "SM8650"),
        ("SDM845", "QF203", "Snapdragon 845"),
        ("SM7325", "QF204", "w8a16"),
        ("57", "QF20", "soc_id:57"),
        ("SM99*", "QF210", "SM99*"),
    ],
)
def test_bad_chips(workshop: Workshop, chip: str, id_: str, says: str) -> None:
    run = workshop.forge("build", "toy", "--soc", chip)
    assert run.code == 4, run.err
    assert id_ in run.err
    assert says in run.err


def test_two_models_of_one_name_and_a_name_that_is_none(workshop: Workshop, tmp_path: Path) -> None:
    run = workshop.forge("build", "toi")
    assert (run.code, "toy" in run.err) == (3, True), run.err
    run = workshop.forge("bild")
    assert (run.code, "Did you mean 'build'" in run.err) == (2, True)
    run = workshop.forge("build", str(tmp_path / "nothing"))
    assert run.code == 3, run.err


def test_a_graph_that_only_looks_wrong_is_built_and_verified(workshop: Workshop) -> None:
    """Nodes of one name, very long names beyond ASCII, a constant among the inputs, an unused input, a batch of 2."""
    odd = "größe/层.0:0 " * 60

    def change(model: onnx.ModelProto) -> None:
        graph = model.graph
        for node in graph.node:
            node.name = odd
            for names in (node.input, node.output):
                names[:] = [name if name in ("x", "y") else odd + name for name in names]
        graph.initializer[0].name = f"{odd}w"
        for value in (graph.input[0], graph.output[0]):
            value.type.tensor_type.shape.dim[0].dim_value = 2
        spare = helper.make_tensor_value_info("spare", TensorProto.FLOAT, [3])
        graph.input.extend([helper.make_tensor_value_info(f"{odd}w", TensorProto.FLOAT, [8, 3, 3, 3]), spare])

    edit(workshop, change)
    yaml(workshop, "      x: [1, 3, size, size]\n", "      x: [2, 3, size, size]\n      spare: [3]\n")
    random = np.random.default_rng(2)
    for path in (workshop.model / "samples").glob("*.npz"):
        np.savez(path, x=random.normal(0, 1, (2, 3, 16, 16)).astype(np.float32), spare=np.zeros(3, np.float32))
    run = workshop.build("--soc", "SM8650")
    assert run.code == 0, run.err
    (target,) = run.document["targets"]
    assert target["verdict"] == "ok"
    manifest = json.loads((workshop.root / target["folder"] / "manifest.json").read_text())
    (graph,) = manifest["graphs"]
    assert [(entry["name"], entry["shape"]) for entry in graph["outputs"]] == [("y", [2, 8, 1, 1])]
    assert sum(change.startswith("renamed-node: ") for change in graph["rewrites"]) == 2
    assert graph["numerics"][0]["cosine"] > 0.9999
