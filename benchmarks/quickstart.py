"""The README's first command in a fresh clone: `make build`, with the install, then again when nothing changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.process_cost import cost_of

ROOT = Path(__file__).resolve().parent.parent


def main() -> list[str]:
    """Clone the last commit, build, build again."""
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        clone = Path(folder) / "qnn-forge"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environment = dict(os.environ, QNN_FORGE_STORE=str(Path(folder) / "store"))
        first = cost_of(["make", "build"], cwd=clone, env=environment)
        again = cost_of(["make", "build"], cwd=clone, env=environment)
        bundles = len(list((clone / "dist").glob("*.tar.gz")))
        shutil.rmtree(clone)
    return [
        f"| {bundles} bundles of two models for six chips | wall s | CPU s | ratio of wall |",
        "|---|---:|---:|---:|",
        f"| `make build` in a fresh clone, install included | {first.wall:.0f} | {first.cpu:.0f} | |",
        f"| `make build` again | {again.wall:.1f} | {again.cpu:.1f} | {again.wall / first.wall:.4f}× |",
    ]


if __name__ == "__main__":
    print("\n".join(main()))
