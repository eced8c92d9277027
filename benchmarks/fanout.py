"""One model for twelve chips: `qnn-forge build` against a plain ONNX Runtime script run twelve times.

The model is all-MiniLM-L6-v2 as models/minilm-l6 exports it (one sentence, 128 tokens, 90 MB of float32). The export
comes before both sides and is not counted. The script (benchmarks/raw_compile.py) is run as people run it, in a shell
loop, one chip after another; qnn-forge runs two jobs at a time and starts with an empty store. Neither runs anything on
the emulator (`--verify none`), but qnn-forge also prepares the graph, looks for values that leave fp16, runs the float
model for the golden outputs, reads every binary back, and writes bundles and archives. Limit: 0.65× the wall time.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.model_folder import Case, workplace
from benchmarks.process_cost import Cost, cost_of
from qnn.build.builder import Builder
from qnn.build.events import Silence
from qnn.build.run import folders_of
from qnn.child import HostPool
from qnn.chips.table import load_table
from qnn.cli.options import default_store
from qnn.model.load import find_models, load_models
from qnn.plan.targets import Wanted, plan_build
from qnn.store import Store
from qnn.toolchains.pip.toolchain import PipToolchain

ROOT = Path(__file__).resolve().parent.parent
MODEL, BUCKET, TOKENS = "minilm-l6", "s1t128", 128
CHIPS = (
    "SA8295", "SM8450", "SM8475", "SM8550", "QCS8550", "SC8380XP",
    "SM8650", "QCS8300", "SM8750", "SM8845", "SM8850", "SM8975",
)  # fmt: skip
LIMIT = 0.65
RAW = Path(__file__).with_name("raw_compile.py")


def take_model(folder: Path) -> Path:
    """``model.onnx``: what models/minilm-l6 exports from PyTorch, in the user's store, where it may be already."""
    plan = plan_build(
        load_models(find_models([MODEL], ROOT / "models")), Wanted((CHIPS[0],), buckets=(BUCKET,)), load_table()
    )
    variant = plan.targets[0].variant
    (graph,) = variant.model.graphs
    with Store(default_store()) as store, HostPool(1) as pool:
        builder = Builder(store, PipToolchain(), pool, folders_of(store.root), Silence())
        source = builder.exported(variant, graph).folder / f"{graph.name}.onnx"
        return Path(shutil.copyfile(source, folder / "model.onnx"))


def run_raw(model: Path, chips: tuple[str, ...], folder: Path) -> Cost:
    """The plain script for one chip after another, each in a process of its own."""
    folder.mkdir()
    table = load_table()
    wall = cpu = 0.0
    peak = 0
    for chip in chips:
        soc = next(soc for soc in table.socs if soc.name == chip)
        command = [sys.executable, str(RAW), str(model), f"{chip}_ctx.onnx", str(soc.soc_id), str(soc.vtcm_mb)]
        cost = cost_of(command, cwd=folder, every=0.5)
        wall, cpu, peak = wall + cost.wall, cpu + cost.cpu, max(peak, cost.peak_bytes)
    if len(list(folder.glob("*.bin"))) != len(chips):
        raise RuntimeError(f"the script made {len(list(folder.glob('*.bin')))} binaries for {len(chips)} chips")
    return Cost(wall, cpu, peak)


def run_forge(model: Path, chips: tuple[str, ...], folder: Path) -> Cost:
    """One build for all chips, with an empty store."""
    random = np.random.default_rng(0)
    sample = {
        "tokens": random.integers(1000, 30000, (1, TOKENS)).astype(np.int32),
        "mask": np.ones((1, TOKENS), np.float32),
    }
    inputs = (f"tokens: [1, {TOKENS}]", f"mask: [1, {TOKENS}]")
    place = workplace(Case("minilm", model, inputs, sample, ", ".join(chips)), folder)
    cost = cost_of(place.build("--verify", "none", "--jobs", "2"), cwd=place.root, env=place.environment, every=0.5)
    if len(list(place.dist.glob("*.tar.gz"))) != len(chips):
        raise RuntimeError(f"{len(list(place.dist.glob('*.tar.gz')))} bundles for {len(chips)} chips")
    return cost


def main(count: int = len(CHIPS)) -> list[str]:
    """Export once, then both sides. The first run of the script is not counted: it brings the libraries into memory."""
    chips = CHIPS[:count]
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        scratch = Path(folder)
        model = take_model(scratch)
        run_raw(model, chips[:1], scratch / "warm")
        raw = run_raw(model, chips, scratch / "raw")
        forge = run_forge(model, chips, scratch / "forge")
    return [
        f"| MiniLM-L6, {len(chips)} chips | wall s | CPU s | peak MB | ratio of wall |",
        "|---|---:|---:|---:|---:|",
        f"| plain script, {len(chips)} runs | {raw.wall:.1f} | {raw.cpu:.1f} | {raw.peak_bytes / 1e6:.0f} | |",
        f"| `qnn-forge build --verify none --jobs 2` | {forge.wall:.1f} | {forge.cpu:.1f} "
        f"| {forge.peak_bytes / 1e6:.0f} | {forge.wall / raw.wall:.2f}× (limit {LIMIT}×) |",
    ]


if __name__ == "__main__":
    print("\n".join(main(*map(int, sys.argv[1:]))))
