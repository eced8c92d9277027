"""Looking through many results: 10 small models × 20 chips, 200 bundles that the store has. Limit: 2 s.

Built once (not verified, to save time: what is looked through is the same), then looked through three times by each of
three commands; the median counts. `build --dry-run` lists every result and reads its files again to check their sha256;
`build` does the same and reads the 200 bundles in the output folder too; `store verify` checks all stages' outputs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.model_folder import FORGE, Case, Workplace, workplace
from benchmarks.process_cost import cost_of
from qnn.chips.table import load_table

MODELS, CHIPS = 10, 20
LIMIT_SECONDS = 2.0
_SIZE = 16


def write_network(path: Path, seed: int) -> None:
    """x float32[1,3,16,16] → Conv, Relu, GlobalAveragePool → y float32[1,8,1,1]."""
    weights = np.random.default_rng(seed).normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("GlobalAveragePool", ["r"], ["y"]),
        ],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, _SIZE, _SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 1, 1])],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def write_models(root: Path, models: int, chips: int) -> Workplace:
    """`models` folders below ``root/models``, all for the same chips; one workplace for them all."""
    names = ", ".join(soc.name for soc in [soc for soc in load_table().socs if soc.fp16][:chips])
    sample = {"x": np.random.default_rng(0).normal(0, 1, (1, 3, _SIZE, _SIZE)).astype(np.float32)}
    root.mkdir()
    places = []
    for number in range(models):
        model = root / "model.onnx"
        write_network(model, number)
        case = Case(f"network-{number:02d}", model, (f"x: [1, 3, {_SIZE}, {_SIZE}]",), sample, names)
        places.append(workplace(case, root))
        model.unlink()
    return places[0]


def main(models: int = MODELS, chips: int = CHIPS) -> list[str]:
    """Build everything, then look through it."""
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        place = write_models(Path(folder) / "place", models, chips)
        build = [FORGE, "build", "--out", str(place.dist), "--verify", "none"]
        first = cost_of([*build, "--jobs", "2"], cwd=place.root, env=place.environment).wall
        listed = subprocess.run(
            [*build, "--dry-run", "--json"], cwd=place.root, env=place.environment, check=True, capture_output=True
        )
        results = json.loads(listed.stdout)["targets"]
        if len(results) != models * chips or not all(result["cached"] for result in results):
            raise RuntimeError(f"{sum(result['cached'] for result in results)} of {models * chips} results are there")
        rows = []
        for title, command in (
            ("build --dry-run", [*build, "--dry-run"]),
            ("build", build),
            ("store verify", [FORGE, "store", "verify"]),
        ):
            costs = [cost_of(command, cwd=place.root, env=place.environment) for _ in range(3)]
            middle = sorted(costs, key=lambda cost: cost.wall)[1]
            rows.append(
                f"| `qnn-forge {title}` (limit {LIMIT_SECONDS:.0f} s) | {middle.wall:.2f} | {middle.cpu:.2f} "
                f"| {middle.wall / first:.4f}× |"
            )
    return [
        f"| {models * chips} results | wall s | CPU s | ratio of wall |",
        "|---|---:|---:|---:|",
        f"| building them (`--verify none --jobs 2`) | {first:.1f} | | |",
        *rows,
    ]


if __name__ == "__main__":
    print("\n".join(main(*map(int, sys.argv[1:]))))
