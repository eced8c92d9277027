"""Lint every model of the caller: annotations on the lines now, lint.json for the report.

REQUEST holds the inputs of the workflow.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from forge import WORK, request, run


def main() -> None:
    folder = Path(request(os.environ["REQUEST"]).models_dir)
    models = sorted(str(path) for path in folder.glob("*/model.yaml"))
    if not models:
        sys.exit(f"::error title=No models::there is no model.yaml in a folder of {folder.name}")
    out = WORK / "out"
    out.mkdir(parents=True, exist_ok=True)
    with (out / "lint.json").open("w") as document:
        subprocess.run(["qnn-forge", "lint", "--format=json", "--", *models], stdout=document, check=False)
    run("lint", "--format=github", "--", *models)


if __name__ == "__main__":
    main()
