"""What each stage of a build costs in CPU seconds, measured by building.

``python -m benchmarks.stage_costs [CHIPS]`` prints the `models` part of scripts/qnn/plan/costs.yaml.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.build.events import Stage
from qnn.build.run import BuildRequest, run_build
from qnn.chips.table import load_table
from qnn.model.load import find_models, load_models
from qnn.plan.targets import Wanted, plan_build

ROOT = Path(__file__).resolve().parent.parent
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """What one stage of one subject took by itself, the stages it asked for not counted. Seconds."""

    stage: str
    subject: str
    wall: float
    cpu: float


class Meter:
    """A listener that books every second to the stage at work. Only for builds with one job: stages are nested then."""

    def __init__(self) -> None:
        self.spent: list[Spent] = []
        self._open: list[tuple[Stage, float, float]] = []
        self._last = self._now()

    def begins(self, stage: Stage) -> None:
        self._book()
        self._open.append((stage, 0.0, 0.0))

    def ends(self, stage: Stage, seconds: float, *, reused: bool) -> None:  # noqa: ARG002 - the listener's signature
        self._book()
        if self._open and self._open[-1][0] == stage:
            _, wall, cpu = self._open.pop()
            self.spent.append(Spent(stage.name, stage.subject, wall, cpu))

    def fails(self, stage: Stage) -> None:
        raise RuntimeError(f"{stage.name} {stage.subject} failed")

    def remarks(self, stage: Stage, lines: Sequence[str]) -> None:
        """Cost nothing."""

    def _book(self) -> None:
        now = self._now()
        if self._open:
            stage, wall, cpu = self._open[-1]
            self._open[-1] = (stage, wall + now[0] - self._last[0], cpu + now[1] - self._last[1])
        self._last = now

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.monotonic(), _cpu_of_tree(os.getpid())


def _cpu_of_tree(root: int) -> float:
    """CPU seconds of a process, its living descendants, and the dead ones they have waited for."""
    total, pids = 0, [root]
    while pids:
        pid = pids.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue  # it ended meanwhile; its parent has its seconds
        total += sum(int(field) for field in fields[11:15])  # utime, stime, cutime, cstime
    return total / _TICK


@dataclass(frozen=True)
class Measured:
    """One build: every stage, and the bytes of every context binary by (model, graph)."""

    spent: tuple[Spent, ...]
    sizes: dict[tuple[str, str], int]

    def cpu(self, stages: Sequence[str], graph: str = "") -> float:
        """CPU seconds of these stages: of one graph, or of all and of what belongs to none."""
        return sum(item.cpu for item in self.spent if item.stage in stages and item.subject.endswith(graph))


def measure(models: Sequence[str], chips: str) -> Measured:
    """Build models for chips with an empty store, one job at a time. Raises RuntimeError when a stage fails."""
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        scratch = Path(folder)
        plan = plan_build(load_models(find_models(models, ROOT / "models")), Wanted((chips,)), load_table())
        meter = Meter()
        results = run_build(BuildRequest(plan, "all", scratch / "dist", scratch / "store", 1, False), meter)
    sizes = {
        (result.target.variant.model.name, graph.graph): graph.size for result in results for graph in result.graphs
    }
    return Measured(tuple(meter.spent), sizes)


def rows(name: str, chips: str) -> list[str]:
    """The lines of costs.yaml for one model. What belongs to the whole model is shared out among its graphs."""
    (model,) = load_models(find_models([name], ROOT / "models"))
    measured = measure([name], chips)
    count, graphs = len(chips.split(",")), len(model.graphs)
    lines = [f"  {name}:"]
    for graph in model.graphs:
        own = f" {graph.name}"
        prepare = measured.cpu(("export", "prepare", "range", "samples", "reference"), own)
        prepare += (measured.cpu(("fetch",)) + measured.cpu(("chain",), " float")) / graphs
        compiling = measured.cpu(("compile",), own) + measured.cpu(("package", "bundle")) / graphs
        chain = measured.cpu(("chain",)) - measured.cpu(("chain",), " float") + measured.cpu(("metric",), " chain")
        verify = measured.cpu(("verify", "metric"), own) + chain / graphs
        lines.append(
            f"    {graph.name}: {{prepare: {prepare:.1f}, compile: {compiling / count:.1f}, "
            f"verify: {verify / count:.1f}, bytes: {measured.sizes[name, graph.name]}}}"
        )
    return lines


if __name__ == "__main__":
    for folder in find_models((), ROOT / "models"):
        print("\n".join(rows(folder.name, sys.argv[1] if len(sys.argv) > 1 else "SM8550,SM8650")), flush=True)
