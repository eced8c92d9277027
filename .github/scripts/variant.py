"""One job of a matrix: `variant.py prepare` or `variant.py compile`.

JOB is the job's entry of the plan (JSON: id, model, bucket, precision; compile: socs too). prepare packs the stage
outputs into WORK/out/ID.tar; compile takes over every archive in WORK/prepared and leaves WORK/out/dist,
WORK/out/results/ID.json and, where all went well, WORK/out/hints/ID.json. Exit code: that of the first qnn-forge
command that fails; hints fail nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from forge import WORK, run


def prepare(job: dict[str, str], out: Path) -> None:
    """Make what does not depend on the chip, and pack it for the jobs that compile."""
    chosen = [f"--bucket={job['bucket']}", f"--precision={job['precision']}"]
    run("prepare", *chosen, "--", job["model"])
    out.mkdir(parents=True, exist_ok=True)
    run("store", "export", f"--model={job['model']}", *chosen, "--", str(out / f"{job['id']}.tar"))


def compile_(job: dict[str, str], out: Path) -> None:
    """Build the bundles of this job's chips; the results are written also when some of them fail."""
    archives = sorted(str(path) for path in (WORK / "prepared").glob("*.tar"))
    # Without an archive preparing failed; building then says why, in the results, where the report finds it.
    if archives:
        run("store", "import", "--", *archives)
    results = out / "results" / f"{job['id']}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    chosen = [f"--bucket={job['bucket']}", f"--precision={job['precision']}", f"--soc={job['socs']}"]
    command = ["qnn-forge", "build", *chosen, f"--out={out / 'dist'}", "--keep-going", "--json", "--", job["model"]]
    with results.open("w") as document:
        code = subprocess.run(command, stdout=document, check=False).returncode
    if not results.stat().st_size:
        results.unlink()
    if code:
        sys.exit(code)
    write_hints(job, out / "hints" / f"{job['id']}.json")


def write_hints(job: dict[str, str], path: Path) -> None:
    """What would make the model faster, by the job's first chip; without hints the report is as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen = [f"--bucket={job['bucket']}", f"--precision={job['precision']}", f"--soc={job['socs'].split(',')[0]}"]
    with path.open("w") as document:
        command = ["qnn-forge", "hints", *chosen, "--json", "--", job["model"]]
        if subprocess.run(command, stdout=document, check=False).returncode:
            path.unlink()


if __name__ == "__main__":
    stages = {"prepare": prepare, "compile": compile_}
    stages[sys.argv[1]](json.loads(os.environ["JOB"]), WORK / "out")
