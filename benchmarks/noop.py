"""Rebuilding when nothing changed, against building: silero-vad for six chips. Limit: 0.5 s."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.process_cost import cost_of

CHIPS = "SM8550,SM8650,SM8750,SM8850,QCS8550,SA8295"
LIMIT_SECONDS = 0.5
ROOT = Path(__file__).resolve().parent.parent


def main() -> list[str]:
    """Build once, then again five times; the median of those counts."""
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        scratch = Path(folder)
        environment = dict(os.environ, QNN_FORGE_STORE=str(scratch / "store"))
        command = [
            str(Path(sys.executable).with_name("qnn-forge")), "build", str(ROOT / "models" / "silero-vad"),
            "--soc", CHIPS, "--out", str(scratch / "dist"),
        ]  # fmt: skip
        first = cost_of(command, cwd=scratch, env=environment)
        again = sorted(cost_of(command, cwd=scratch, env=environment).wall for _ in range(5))[2]
    return [
        "| silero-vad, 6 chips | wall s | ratio |",
        "|---|---:|---:|",
        f"| first build | {first.wall:.2f} | |",
        f"| nothing changed (limit {LIMIT_SECONDS} s) | {again:.2f} | {again / first.wall:.3f}× |",
    ]


if __name__ == "__main__":
    print("\n".join(main()))
