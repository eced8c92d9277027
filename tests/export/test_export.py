"""What export.py gives becomes an ONNX file with the names and shapes of model.yaml, the same bytes every time."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest

from qnn.export.facts import load_export
from tests.export.conftest import GOOD, Bench, row


def test_the_file_has_the_names_and_shapes_that_were_asked_for(bench: Bench) -> None:
    facts = bench.export()
    model = onnx.load(bench.onnx)
    assert [(v.name, [d.dim_value for d in v.type.tensor_type.shape.dim]) for v in model.graph.input] == [("x", [1, 4])]
    assert [value.name for value in model.graph.output] == ["output"]
    assert (facts.exporter, facts.opset, facts.files) == ("torch.export", 20, ("net.onnx",))
    assert load_export(bench.onnx.parent) == facts
    assert sorted(path.name for path in bench.onnx.parent.iterdir()) == ["export.json", "net.onnx"]


def test_the_function_gets_bucket_and_sources(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("3")
    bench.sources = {"weights": tmp_path / "weights"}
    bench.export(
        """
        def net(*, bucket, sources):
            assert bucket == {"n": 4}, bucket
            assert sources["weights"].read_text() == "3"
            return {"module": Net(), "inputs": {"x": torch.zeros(1, bucket["n"])}}
        """
    )
    assert bench.onnx.exists()


def test_names_opset_and_exporter_are_taken(bench: Bench) -> None:
    facts = bench.export(GOOD[:-2] + ', "outputs": ["y"], "opset": 17, "exporter": "legacy"}\n')
    assert (facts.exporter, facts.opset) == ("legacy", 17)
    assert [value.name for value in onnx.load(bench.onnx).graph.output] == ["y"]


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        ("torch.relu(x)", ["output"]),
        ("(torch.relu(x), None, torch.double(x))", ["output_0", "output_1"]),
        ("{'low': torch.relu(x), 'none': None, 'high': torch.double(x)}", ["low", "high"]),
    ],
)
def test_outputs_without_names_get_some_and_none_is_left_out(bench: Bench, returned: str, names: list[str]) -> None:
    class_ = f"class Two(torch.nn.Module):\n    def forward(self, x):\n        return {returned}\n\n\n"
    bench.export(class_ + GOOD.replace("Net()", "Two()"))
    assert [value.name for value in onnx.load(bench.onnx).graph.output] == names
    assert bench.hold(row(1, 2, 3, -4)).max_abs == 0


@pytest.mark.parametrize("source", ["torch.rand(1, 4)", "tensor(np.random.rand(1, 4))", "tensor([[random.random()]])"])
def test_two_exports_in_two_places_are_the_same_bytes_without_paths(bench: Bench, source: str) -> None:
    body = """
    import random
    import numpy as np

    def tensor(values):
        return torch.from_numpy(np.array(values, np.float32))

    class Random(torch.nn.Module):
        def __init__(self):
            self.weight = SOURCE

        def forward(self, x):
            return torch.add(x, self.weight)

    def net(*, bucket, sources):
        print("to the log")
        return {"module": Random(), "inputs": {"x": torch.zeros(1, 4)}}
    """
    bench.export(body.replace("SOURCE", source))
    bench.export(body.replace("SOURCE", source), out="again")
    first, second = bench.onnx.read_bytes(), (bench.root / "again" / "net.onnx").read_bytes()
    assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()
    assert str(bench.root).encode() not in first
    assert b"fake" not in first
    assert onnx.load(bench.onnx).producer_version == ""
    assert "to the log" in bench.log.read_text()


def test_what_the_file_computes_is_held_to_the_module(bench: Bench) -> None:
    bench.export()
    facts = bench.hold(row(1, -2, 3, -4), row(0, 0, 0, 0))
    assert facts.cosine is not None
    assert abs(facts.cosine - 1) < 1e-12
    assert (facts.max_abs, facts.double) == (0.0, False)


def test_an_int32_sample_is_widened_for_a_module_that_takes_int64(bench: Bench) -> None:
    class_ = "class Sum(torch.nn.Module):\n    def forward(self, x):\n        return torch.double(x)\n\n\n"
    bench.export(class_ + GOOD.replace("Net()", "Sum()").replace('["n"])', '["n"], dtype=torch.int64)'))
    facts = bench.hold({"x": np.array([[1, 2, -3, 4]], np.int32)})
    assert (facts.cosine, facts.max_abs) == (None, 0.0)
