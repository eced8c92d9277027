"""A pulled bundle in the hands of those who use it: ONNX Runtime, qnn-net-run's command, sherpa-onnx's reader."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from qnn.binary.qnn_system import installed_library
from tests.distribution.conftest import REPOSITORY, Market, bundle_name
from tests.e2e.conftest import YAML, Run, Workshop

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "consumers.md").read_text(encoding="utf-8")
NAME = bundle_name("toy-b", "SM8650")


@pytest.fixture(scope="module")
def pulled(market: Market, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `qnn-forge pull` left: a bundle's folder."""
    folder = tmp_path_factory.mktemp("pulled")
    market.must(
        "pull", "toy-b", "--soc", "8 Gen 3", "--from", market.open_shop(), "--out", str(folder),
        "--attested-by", REPOSITORY, "--trusted-root", str(market.trusted_root), QNN_FORGE_CACHE=str(folder / "cache"),
    )  # fmt: skip
    return folder / NAME


def facts(bundle: Path) -> dict[str, Any]:
    (graph,) = json.loads((bundle / "manifest.json").read_text())["graphs"]
    assert isinstance(graph, dict)
    return graph


def run_the_page_s_python(market: Market, bundle: Path, folder: Path) -> Run:
    """The lines of docs/consumers.md, as a file of an app developer who has no qnn-forge."""
    (lines,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(lines))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert imported - sys.stdlib_module_names == {"numpy", "onnxruntime", "onnxruntime_qnn"}
    assert '"session.disable_cpu_ep_fallback", "1"' in lines
    (folder / "run_bundle.py").write_text(lines)
    # Isolated: neither this repository nor PYTHONPATH is on its path.
    return market.run([sys.executable, "-I", "run_bundle.py", str(bundle)], folder)


def test_onnx_runtime_gives_the_golden_outputs(market: Market, pulled: Path, here: Path) -> None:
    run = run_the_page_s_python(market, pulled, here)
    assert run.code == 0, run.err
    (numeric,) = facts(pulled)["numerics"]
    # Behind our lines the emulator may print some of its own.
    found = re.match(r"net y float32 \[1, 8, 1, 1\] max abs (\S+)\n", run.out)
    assert found, run.out
    assert float(found[1]) == pytest.approx(numeric["max_abs"], rel=1e-6)
    assert 0 < float(found[1]) < 0.01


def test_onnx_runtime_does_not_run_on_the_cpu_instead(market: Market, pulled: Path, here: Path) -> None:
    """The wrapper holds nothing that could: without the binary there is no session."""
    shutil.copytree(pulled, here / NAME)
    (here / NAME / "net.bin").unlink()
    run = run_the_page_s_python(market, here / NAME, here)
    assert run.code != 0
    assert "max abs" not in run.out


def test_the_lines_for_qnn_net_run_are_those_of_the_readme(pulled: Path) -> None:
    (block,) = re.findall(r"```sh\n(adb push.*?)```", PAGE, re.DOTALL)
    example = "silero-vad-6.2.3-default-fp16-SM8650-qairt2.51.0"
    ours = block.replace(example, NAME).replace("golden/vad/", "golden/net/").replace("vad.bin", "net.bin")
    readme = (pulled / "README.txt").read_text()
    assert " ".join(ours.replace("out_vad", "out_net").split()) in " ".join(readme.split())


def test_sherpa_onnx_finds_what_it_looks_for(market: Market, pulled: Path) -> None:
    """Independent of `inspect --for`: the same calls, and sizes as the golden files have them."""
    graph = facts(pulled)
    command = ["-m", "tests.distribution.read_as_sherpa_onnx", str(installed_library()), str(pulled / "net.bin")]
    run = market.run([sys.executable, *command])
    assert run.code == 0, run.err
    read = run.document
    assert (read["version"], read["graphs"], read["first"]["version"]) == (3, 1, 3)
    assert read["first"]["name"] == graph["graph_name"]
    golden = pulled / "golden" / "net" / "sample_000"
    for side in ("inputs", "outputs"):
        assert [(one["name"], one["shape"]) for one in read["first"][side]] == [
            (one["name"], one["shape"]) for one in graph[side]
        ]
        for one in read["first"][side]:
            assert one["bytes"] == (golden / f"{one['name']}.raw").stat().st_size
    fit = market.forge("inspect", str(pulled / "net.bin"), "--for", "sherpa-onnx")
    assert (fit.code, fit.err) == (0, "")


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A bundle whose graph takes bool and int64."""
    shop = Workshop(tmp_path / "odd")
    (shop.model / "samples").mkdir(parents=True)
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "x"], ["x2"]),
            helper.make_node("Where", ["m", "x", "x2"], ["w"]),
            helper.make_node("Gather", ["w", "n"], ["y"], axis=1),
        ],
        "odd",
        [
            tensor("x", TensorProto.FLOAT, [1, 8]),
            tensor("m", TensorProto.BOOL, [1, 8]),
            tensor("n", TensorProto.INT64, [2]),
        ],
        [tensor("y", TensorProto.FLOAT, [1, 2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, shop.model / "model.onnx")
    x = np.linspace(-1, 2, 8, dtype=np.float32).reshape(1, 8)
    np.savez(shop.model / "samples" / "000.npz", x=x, m=x > 0, n=np.array([1, 6]))
    shapes = "      x: [1, 8]\n      m: [1, 8]\n      n: {shape: [2], dtype: int64}\n"
    text = YAML.format(extra="").replace("      x: [1, 3, size, size]\n", shapes).replace("count: 2", "count: 1")
    text = text.replace("buckets:\n  s16: {size: 16}\n", "")
    (shop.model / "model.yaml").write_text(text)
    assert shop.forge("pin", "toy").code == 0
    built = shop.build("--soc", "SM8650")
    assert built.code == 0, built.err
    (bundle,) = (path for path in shop.dist.iterdir() if path.is_dir())
    return bundle


def test_sherpa_onnx_cannot_use_bool_and_int64(market: Market, odd: Path) -> None:
    command = ["-m", "tests.distribution.read_as_sherpa_onnx", str(installed_library()), str(odd / "net.bin")]
    read = market.run([sys.executable, *command]).document
    assert {one["name"]: one["bytes"] for one in read["first"]["inputs"]} == {"x": 32, "m": None, "n": None}
    run = market.forge("inspect", str(odd / "net.bin"), "--for", "sherpa-onnx")
    assert (run.code, "QF606" in run.err) == (8, True)
    assert "input 'm' is bool8" in run.err
    assert "input 'n' is int64" in run.err
    # ONNX Runtime takes it all the same.
    assert run_the_page_s_python(market, odd, odd.parent).code == 0
