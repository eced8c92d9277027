"""A small model that really compiles, runs and verifies in about a second, and ways to build it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

YAML = """\
name: toy
version: "1.0"
summary: A small network for tests.
task: test
licence: {{spdx: MIT}}
sources:
  weights: {{local: model.onnx}}
graphs:
  net:
    source: weights
    inputs:
      x: [1, 3, size, size]
buckets:
  s16: {{size: 16}}
precisions: [fp16]
targets: {{socs: [public]}}
checks:
  samples: samples/
  count: 2
{extra}"""


@dataclass(frozen=True)
class Run:
    """One finished command line."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Workshop:
    """A folder with models/toy in it, a store and an output folder."""

    root: Path

    @property
    def model(self) -> Path:
        return self.root / "models" / "toy"

    @property
    def dist(self) -> Path:
        return self.root / "dist"

    @property
    def store(self) -> Path:
        return self.root / "store"

    def forge(self, *arguments: str, env: dict[str, str] | None = None) -> Run:
        """Run qnn-forge in the workshop."""
        return self._run([sys.executable, "-m", "qnn.cli", *arguments], env)

    def _run(self, command: list[str], env: dict[str, str] | None) -> Run:
        done = subprocess.run(
            command,
            cwd=self.root,
            env={**environment(self.store), **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def build_with(self, compile_job: str, *arguments: str) -> Run:
        """qnn-forge build toy … with another compile job in the real one's place (see fake_compiler.py)."""
        script = (
            "import sys; from qnn.toolchains.pip.toolchain import PipToolchain\n"
            f"PipToolchain.compile_job = 'tests.e2e.fake_compiler:{compile_job}'\n"
            "from qnn.cli import run; sys.exit(run(sys.argv[1:]))\n"
        )
        return self._run([sys.executable, "-c", script, "build", "toy", *arguments], None)

    def build(self, *arguments: str, env: dict[str, str] | None = None) -> Run:
        """qnn-forge build toy --json …"""
        return self.forge("build", "toy", "--json", *arguments, env=env)


def environment(store: Path) -> dict[str, str]:
    """This process's environment with the package importable and a store of its own."""
    return dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path), QNN_FORGE_STORE=str(store))


def conv_net(path: Path, *, seed: int = 0, size: int | str = "size") -> None:
    """x float32[1,3,size,size] → Conv, Relu, GlobalAveragePool → y float32[1,8,1,1]."""
    random = np.random.default_rng(seed)
    weights = numpy_helper.from_array(random.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    save(path, nodes, {"x": [1, 3, size, size]}, {"y": [1, 8, 1, 1]}, [weights])


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[Any]],
    outputs: dict[str, list[Any]],
    weights: list[onnx.TensorProto],
) -> None:
    """Write float32 graphs."""
    graph = helper.make_graph(
        nodes,
        "toy",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """A workshop whose toy model is pinned and ready to build."""
    shop = Workshop(tmp_path)
    (shop.model / "samples").mkdir(parents=True)
    conv_net(shop.model / "model.onnx")
    random = np.random.default_rng(1)
    for number in range(2):
        sample = random.normal(0, 1, (1, 3, 16, 16)).astype(np.float32)
        np.savez(shop.model / "samples" / f"{number:03d}.npz", x=sample)
    (shop.model / "model.yaml").write_text(YAML.format(extra=""))
    pinned = shop.forge("pin", "toy")
    assert pinned.code == 0, pinned.err
    return shop
