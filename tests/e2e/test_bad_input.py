"""Bad input through the public command: one clear error with its id, its exit code, nothing half-written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

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
    """A condition that depends on the input, so that preparation cannot decide it."""
    arms = []
    for name, op in (("then", "Relu"), ("else", "Neg")):
        output = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)
        arms.append(helper.make_graph([helper.make_node(op, ["x"], [f"{name}_y"])], name, [], [output]))
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["flag"], to=TensorProto.BOOL),
        helper.make_node("If", ["flag"], ["y"], name="the_branch", then_branch=arms[0], else_branch=arms[1]),
    ]
    save(shop.model / "model.onnx", nodes, {"x": [1, 3, "size", "size"]}, {"y": [1, 3, "size", "size"]}, [])
    repin(shop)


def int64_input(shop: Workshop) -> None:
    """An int64 input that model.yaml does not speak of."""
    conv_net(shop.model / "model.onnx")
    model = onnx.load(shop.model / "model.onnx")
    model.graph.input.append(helper.make_tensor_value_info("step", TensorProto.INT64, [1]))
    onnx.save(model, shop.model / "model.onnx")
    repin(shop)


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
    run = workshop.forge("build", "toy", "--soc", "SM8650")
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
