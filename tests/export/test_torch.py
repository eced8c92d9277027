"""The real torch: a model that is exported, compiled and verified; the same bytes; a planted fault is found.

The first test makes an environment with torch in it, half a minute and 1 GB; it goes when the tests of this file end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from qnn.build.run import folders_of
from qnn.child import Host, Limits
from qnn.errors.export import ParityFailed, UnsafeWeights
from qnn.model.rules.exports import ONNXSCRIPT, TORCH
from qnn.model_code import environment_python
from tests.e2e.conftest import Run, Workshop
from tests.export.conftest import Bench

YAML = f"""\
name: toy
version: "1.0"
summary: A small network for tests.
task: test
licence: {{spdx: MIT}}
sources:
  weights: {{local: weights.npy}}
graphs:
  net:
    export: export.py:net
    inputs:
      x: [1, 3, size, size]
buckets:
  s16: {{size: 16}}
precisions: [fp16]
targets: {{socs: [SM8650]}}
checks: {{data: data.py:samples, count: 2}}
requires: [{TORCH}, {ONNXSCRIPT}]
"""
DATA = """\
import numpy as np


def samples(*, graph, inputs, sources, count):
    random = np.random.default_rng(0)
    for _ in range(count):
        yield {name: random.normal(0, 1, shape).astype(np.float32) for name, shape in inputs.items()}
"""
NETWORK = """\
import torch
from torch.nn import functional


class Net(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.conv.weight.data = weights
        self.head = torch.nn.Linear(8, 5)  # of random weights, the same every time
        self.drop = torch.nn.Dropout(0.5)  # does nothing in evaluation mode

    def forward(self, x):
        x = functional.gelu(self.conv(x))
        first, second = self.drop(x.mean((2, 3))).chunk(2, dim=-1)
        return torch.softmax(self.head(torch.cat([second, first], dim=-1)), dim=-1)
"""
EXPORT = """\
import numpy as np
import torch

from network import Net


def net(*, bucket, sources):
    size = bucket.get("size", 16)
    return {
        "module": Net(torch.from_numpy(np.load(sources["weights"]))),
        "inputs": {"x": torch.zeros(1, 3, size, size)},
        "outputs": ["scores"],
    }
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    shop = Workshop(tmp_path_factory.mktemp("torch"))
    shop.model.mkdir(parents=True)
    for name, text in {"model.yaml": YAML, "data.py": DATA, "network.py": NETWORK, "export.py": EXPORT}.items():
        (shop.model / name).write_text(text)
    np.save(shop.model / "weights.npy", np.random.default_rng(1).normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32))
    assert shop.forge("pin", "toy").code == 0
    # The build would make it too; made here it has the time it needs on a machine that is busy.
    environment_python([TORCH, ONNXSCRIPT], folders_of(shop.store).environments, log=shop.root / "pip.log")
    yield shop
    shutil.rmtree(shop.store / "environments", ignore_errors=True)


@pytest.fixture(scope="module")
def built(shop: Workshop) -> Run:
    return shop.build()


@pytest.fixture
def bench(shop: Workshop, built: Run, tmp_path: Path, host: Host) -> Bench:
    """The model of the shop, called directly."""
    assert built.code == 0
    shutil.copytree(shop.model, tmp_path / "model")
    (python,) = (shop.store / "environments").glob("*/bin/python")
    weights = {"weights": shop.model / "weights.npy"}
    # Torch alone takes a minute to import where many programs want the machine.
    limits = Limits(seconds=600, memory_bytes=4 << 30)
    return Bench(tmp_path, host, python, {"x": (1, 3, 16, 16)}, weights, limits)


def stored(shop: Workshop, name: str) -> Path:
    (file,) = (shop.store / "objects").rglob(name)
    return file


def test_a_module_becomes_a_verified_bundle(shop: Workshop, built: Run) -> None:
    assert built.code == 0, built.err
    (result,) = built.document["targets"]
    assert result["verdict"] == "ok"
    facts = json.loads(stored(shop, "export.json").read_text())
    assert facts["exporter"] == "torch.export"
    assert facts["packages"]["torch"].partition("+")[0] == TORCH.partition("==")[2]
    model = onnx.load(stored(shop, "export.json").with_name("net.onnx"))
    assert facts["opset"] == model.opset_import[0].version
    assert [value.name for value in model.graph.output] == ["scores"]
    parity = json.loads(stored(shop, "parity.json").read_text())
    assert 1 - parity["cosine"] < 1e-9
    assert parity["max_abs"] < 1e-6
    manifest = json.loads((shop.root / result["folder"] / "manifest.json").read_text())
    assert manifest["graphs"][0]["export"]["opset"] == facts["opset"]
    assert manifest["graphs"][0]["export"]["packages"]["torch"] == TORCH.partition("==")[2]
    assert "export net" in manifest["stages"]
    (again,) = shop.build().document["targets"]
    assert again["reused"] is True


def test_another_export_elsewhere_has_the_same_bytes(shop: Workshop, bench: Bench) -> None:
    bench.export(EXPORT, head="")
    assert bench.onnx.read_bytes() == stored(shop, "export.json").with_name("net.onnx").read_bytes()


def test_the_first_tensor_that_differs_is_named_with_its_line(bench: Bench) -> None:
    bench.export(EXPORT, head="")
    model = onnx.load(bench.onnx)
    (gelu,) = (node for node in model.graph.node if node.op_type == "Gelu")
    gelu.op_type = "Relu"
    del gelu.attribute[:]
    onnx.save(model, bench.onnx)
    with pytest.raises(ParityFailed) as caught:
        bench.hold({"x": np.random.default_rng(0).normal(0, 1, (1, 3, 16, 16)).astype(np.float32)})
    assert "output scores of the exported file is not the module's on sample 0" in caught.value.message
    line = 1 + NETWORK.splitlines().index("        x = functional.gelu(self.conv(x))")
    assert caught.value.details[0] == (
        f"first tensor that differs: gelu, made by Relu from aten.gelu.default, network.py:{line}"
    )


# What the older exporter folds, works on in place, has more than once, and leaves out.
TRACED = """
import torch
from torch.nn import functional


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        return x + functional.elu(self.norm(self.linear(x)))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.norm.running_mean.normal_()
        self.relu = torch.nn.ReLU(inplace=True)
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.lstm = torch.nn.LSTM(8, 8)

    def forward(self, x):
        x = self.relu(self.norm(self.conv(x)))
        unused = torch.relu(x)
        first, second = x.permute(0, 2, 3, 1).mean((1, 2)).chunk(2, dim=-1)
        x = torch.cat([second, first], dim=-1)
        for block in (*self.blocks, self.blocks[0]):
            x = block(x)
        return self.lstm(x[None])[0]


def net(*, bucket, sources):
    return {"module": Net(), "inputs": {"x": torch.zeros(1, 3, 16, 16)}, "exporter": "legacy"}
"""
PLANTED = """
torch.onnx.register_custom_op_symbolic("aten::elu", lambda graph, x, *_: graph.op("Selu", x), 18)
"""


def test_the_first_tensor_of_the_older_exporter_s_file_that_differs_is_named_too(bench: Bench) -> None:
    bench.export(TRACED + PLANTED, head="")
    with pytest.raises(ParityFailed) as caught:
        bench.hold({"x": np.random.default_rng(0).normal(1, 1, (1, 3, 16, 16)).astype(np.float32)})
    line = 1 + TRACED.splitlines().index("        return x + functional.elu(self.norm(self.linear(x)))")
    assert caught.value.details[0].startswith(
        f"first tensor that differs: /blocks.0/Selu_output_0, made by Selu from elu, export.py:{line} in functional.py:"
    )


def test_a_pickle_that_runs_code_is_refused_even_when_export_py_asks_for_it(bench: Bench) -> None:
    evil = f"""
import os

class Evil:
    def __reduce__(self):
        return (os.mkdir, ({str(bench.root / "evil")!r},))

torch.save(Evil(), "weights.pth")
torch.load("weights.pth", weights_only=False)
"""
    with pytest.raises(UnsafeWeights, match=r"a file of weights holds posix\.mkdir, and was not loaded"):
        bench.export(evil, head=EXPORT)
    assert not (bench.root / "evil").exists()
