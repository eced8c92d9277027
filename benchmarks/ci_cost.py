"""What CI costs when export and conversion are done in every job, against preparing each variant once.

Replays the published matrix of sherpa-onnx's QNN workflows (201 variants × 10 SoCs less those without fp16: 1,901 jobs,
each of which exports, converts and compiles) against the plan that qnn-forge makes for as many variants and chips. The
seconds of the stages and of setting up a machine are measured here, in this run, on silero-vad, and charged to both
sides alike; verification is left out of both, since sherpa-onnx has none. Seconds are of CPU. Limit: 0.2.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process_cost import cost_of
from benchmarks.stage_costs import ROOT, measure
from qnn.chips.table import load_table
from qnn.plan.costs import Cost, load_costs
from qnn.plan.jobs import Jobs, join_single, make_jobs
from qnn.plan.outline import Outline, OutlineGraph
from qnn.plan.planner import PlannedVariant

VARIANTS, SOCS, JOBS = 201, 10, 1901
LIMIT = 0.2
MODEL, CHIPS = "silero-vad", "SM8550,SM8650"
_PREPARE = ("fetch", "prepare", "samples", "reference")
_COMPILE = ("compile", "package", "bundle")


@dataclass(frozen=True)
class Seconds:
    """CPU seconds: `setup` of one machine, `prepare` of one variant, `compile` for one chip."""

    setup: float
    prepare: float
    compile: float


def measured_seconds() -> Seconds:
    """Install the toolkit into a fresh environment, and build silero-vad for two chips with an empty store."""
    built = measure([MODEL], CHIPS)
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        scratch = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", str(scratch / "venv")], check=True)
        pip = [str(scratch / "venv" / "bin" / "pip"), "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
        setup = cost_of([*pip, str(ROOT)], cwd=scratch, env=dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1"))
    return Seconds(setup.cpu, built.cpu(_PREPARE), built.cpu(_COMPILE) / len(CHIPS.split(",")))


def plan_of_matrix(seconds: Seconds) -> Jobs:
    """qnn-forge's jobs for the same bundles: 92 variants for ten chips, 109 for nine."""
    chips = tuple(soc for soc in load_table().socs if soc.fp16)[:SOCS]  # which ones makes no difference
    with_all = JOBS - VARIANTS * (SOCS - 1)
    variants = [
        PlannedVariant(_model(number), "default", "w8a16", chips if number < with_all else chips[1:], ("asked for",))
        for number in range(VARIANTS)
    ]
    cost = Cost(seconds.prepare, seconds.compile, 0.0, 0)
    measured = {(variant.model.name, "main"): cost for variant in variants}
    costs = dataclasses.replace(load_costs(), setup=seconds.setup, measured=measured)
    return make_jobs(variants, costs, "all")


def _model(number: int) -> Outline:
    name = f"model-{number:03d}"
    graph = OutlineGraph("main", {"w8a16": 0})
    return Outline(name, f"models/{name}", ("default",), ("w8a16",), ("all",), (), (graph,), 1)


def main() -> list[str]:
    """Measure, replay, compare."""
    seconds = measured_seconds()
    planned = plan_of_matrix(seconds)
    joined = join_single(planned, dataclasses.replace(load_costs(), setup=seconds.setup))
    assert sum(len(job.socs) for job in planned.compile) == JOBS
    theirs = JOBS * (seconds.setup + seconds.prepare + seconds.compile) / 60
    lines = [
        f"Measured: {seconds.setup:.1f} s to set up a machine (pip install), {seconds.prepare:.1f} s to prepare "
        f"{MODEL} ({', '.join(_PREPARE)}), {seconds.compile:.2f} s a chip ({', '.join(_COMPILE)}).",
        "",
        "| 201 variants × 10 SoCs, 1,901 bundles | jobs | CPU minutes | ratio of jobs | ratio of CPU minutes |",
        "|---|---:|---:|---:|---:|",
        f"| everything in every job | {JOBS:,} | {theirs:.0f} | | |",
    ]
    for title, jobs in (("`qnn-forge plan`", planned), ("`qnn-forge plan --join`", joined)):
        lines.append(
            f"| {title} (limit {LIMIT}) | {jobs.count:,} | {jobs.minutes:.0f} | {jobs.count / JOBS:.3f} "
            f"| {jobs.minutes / theirs:.3f} |"
        )
    without = (VARIANTS * seconds.prepare + JOBS * seconds.compile) / (JOBS * (seconds.prepare + seconds.compile))
    lines += [
        "",
        f"Without the machines' set-up the stages alone come to {without:.3f}: preparing costs only "
        f"{seconds.prepare / seconds.compile:.1f} times compiling here. The ratio nears {VARIANTS / JOBS:.3f} where "
        "preparing is export from torch and conversion, as in those workflows.",
    ]
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
