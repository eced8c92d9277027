"""Print the packages that a pyproject.toml asks for, one a line. Used in the image's build; needs Python alone."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"]
print("\n".join(project["dependencies"]))
