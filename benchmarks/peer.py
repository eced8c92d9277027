"""The same model and chips through Olive, whose pass EPContextBinaryGenerator drives the same onnxruntime-qnn wheel.

Olive comes from PyPI into an environment of its own (benchmarks/olive.constraints.txt), made before both sides and kept
in the user's store. It runs the pass and nothing else (benchmarks/olive_pass.py) with the provider options that
qnn-forge sets, one process a chip, one after another: the pass takes one chip, and the second compile in a process
gives other bytes than the first. The model is that of the fan-out benchmark; as there nothing runs on the emulator.
Where Olive fails, its error stands in the table.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from benchmarks.fanout import run_forge, take_model
from benchmarks.process_cost import Cost, cost_of
from qnn.chips.table import load_table
from qnn.cli.options import default_store

CHIPS = ("SM8550", "SM8650", "SM8750", "SM8850")
CONSTRAINTS = Path(__file__).with_name("olive.constraints.txt")
PASS = Path(__file__).with_name("olive_pass.py")


def environment() -> Path:
    """The interpreter of an environment with Olive as pinned; made once."""
    folder = default_store() / "environments" / "olive-of-benchmarks"
    python, done = folder / "bin" / "python", folder / "constraints.txt"
    pins = CONSTRAINTS.read_text(encoding="utf-8")
    if not done.is_file() or done.read_text(encoding="utf-8") != pins:
        venv.create(folder, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "-c", str(CONSTRAINTS), "olive-ai", "onnxruntime-qnn", "requests"], check=True)
        done.write_text(pins, encoding="utf-8")
    return python


def run_olive(python: Path, model: Path, chips: tuple[str, ...], folder: Path) -> Cost | str:
    """The pass for one chip after another; where it fails, the last line of what it said."""
    table = load_table()
    wall = cpu = 0.0
    peak = 0
    for chip in chips:
        soc = next(soc for soc in table.socs if soc.name == chip)
        out = folder / chip
        out.mkdir(parents=True)
        try:
            command = [str(python), str(PASS), str(model), str(out / "model"), str(soc.soc_id), str(soc.vtcm_mb)]
            cost = cost_of(command, cwd=out, env=dict(os.environ, OLIVE_DISABLE_TELEMETRY="1"))
        except subprocess.CalledProcessError as error:
            said = [line.strip() for line in str(error.output).splitlines() if line.strip()]
            return f"{chip}: {said[-1] if said else f'exit code {error.returncode}'}"
        if not list(out.rglob("*.bin")):
            return f"{chip}: no error, and no context binary"
        wall, cpu, peak = wall + cost.wall, cpu + cost.cpu, max(peak, cost.peak_bytes)
    return Cost(wall, cpu, peak)


def main(count: int = len(CHIPS)) -> list[str]:
    """Make Olive's environment, then both sides; Olive's first run is not counted, since it compiles its modules."""
    chips = CHIPS[:count]
    python = environment()
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        scratch = Path(folder)
        model = take_model(scratch)
        warm = run_olive(python, model, chips[:1], scratch / "warm")
        olive = warm if isinstance(warm, str) else run_olive(python, model, chips, scratch / "olive")
        forge = run_forge(model, chips, scratch / "forge")
    title = f"`qnn-forge build --verify none --jobs 2` | {_figures(forge)}"
    head = [
        f"| MiniLM-L6, {len(chips)} chips | wall s | CPU s | peak MB | ratio of wall |",
        "|---|---:|---:|---:|---:|",
    ]
    if isinstance(olive, str):
        return [*head, f"| {title} | |", "", f"Olive's pass does not run here: `{olive}`"]
    return [
        *head,
        f"| Olive's pass, {len(chips)} runs | {_figures(olive)} | |",
        f"| {title} | {forge.wall / olive.wall:.2f}× |",
    ]


def _figures(cost: Cost) -> str:
    return f"{cost.wall:.1f} | {cost.cpu:.1f} | {cost.peak_bytes / 1e6:.0f}"


if __name__ == "__main__":
    print("\n".join(main(*map(int, sys.argv[1:]))))
