"""What qnn-forge costs over a 30-line ONNX Runtime script that does the same work: one model, one chip, cold.

Limits: CPU time ≤ 1.15×, peak memory ≤ 1.2×.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import model_folder
from benchmarks.bert import SEQUENCE, VOCABULARY, write_bert
from benchmarks.model_folder import workplace
from benchmarks.process_cost import Cost, cost_of
from qnn.model.spec import Source, SourceKind
from qnn.sources.fetch import fetch  # the wheel comes the way every source comes

CHIP, SOC_ID, VTCM_MB = "SM8650", "57", "8"
CPU_LIMIT, MEMORY_LIMIT = 1.15, 1.2
RAW = Path(__file__).with_name("raw_onnxruntime.py")


@dataclass(frozen=True)
class Case:
    """One model: its file, one sample, its input in model.yaml, and its symbols for the raw script."""

    name: str
    model: Path
    sample: dict[str, np.ndarray]
    inputs: str
    symbols: tuple[str, ...]


def compare(case: Case, scratch: Path) -> tuple[Cost, Cost]:
    """(raw, forge) cost of the same work."""
    raw_folder = scratch / f"{case.name}-raw"
    raw_folder.mkdir()
    np.savez(raw_folder / "sample.npz", **case.sample)
    command = [sys.executable, str(RAW), str(case.model), "sample.npz", SOC_ID, VTCM_MB, *case.symbols]
    raw = cost_of(command, cwd=raw_folder)
    forge_folder = scratch / f"{case.name}-forge"
    place = workplace(model_folder.Case(case.name, case.model, (case.inputs,), case.sample, CHIP), forge_folder)
    forge = cost_of(place.build("--soc", CHIP), cwd=place.root, env=place.environment)
    shutil.rmtree(forge_folder)
    shutil.rmtree(raw_folder)
    return raw, forge


def cases(scratch: Path) -> list[Case]:
    """PP-OCRv4 recognition (real weights) and a BERT-base-sized model made here."""
    weights = Source(
        "rec", SourceKind.PYPI, "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", None, None,
    )  # fmt: skip
    (scratch / "rec").mkdir()
    rec = fetch(weights, scratch / "rec", scratch / "downloads", model_folder=scratch).path
    bert = scratch / "bert.onnx"
    write_bert(bert)
    random = np.random.default_rng(0)
    image = random.uniform(-1, 1, (1, 3, 48, 320)).astype(np.float32)
    ids = random.integers(0, VOCABULARY, (1, SEQUENCE)).astype(np.int32)
    return [
        Case(
            "ppocr-rec",
            rec,
            {"x": image},
            "x: [1, 3, 48, 320]",
            ("p2o.DynamicDimension.0=1", "?=48", "p2o.DynamicDimension.1=320"),
        ),
        Case("bert-base", bert, {"ids": ids}, f"ids: [1, {SEQUENCE}]", ()),
    ]


def main() -> list[str]:
    """Run both sides of every case; returns the table's lines."""
    lines = [
        "| model | | wall s | CPU s | peak MB | CPU ratio | memory ratio |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        scratch = Path(folder)
        for case in cases(scratch):
            raw, forge = compare(case, scratch)
            cpu, memory = forge.cpu / raw.cpu, forge.peak_bytes / raw.peak_bytes
            lines.append(
                f"| {case.name} | raw script | {raw.wall:.1f} | {raw.cpu:.1f} | {raw.peak_bytes / 1e6:.0f} | | |"
            )
            lines.append(
                f"| | qnn-forge build | {forge.wall:.1f} | {forge.cpu:.1f} | {forge.peak_bytes / 1e6:.0f} "
                f"| {cpu:.2f}× (limit {CPU_LIMIT}×) | {memory:.2f}× (limit {MEMORY_LIMIT}×) |"
            )
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
