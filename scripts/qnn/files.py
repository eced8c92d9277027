"""A second name for the same bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def link_or_copy(source: Path, target: Path) -> None:
    """Make `target` the same file as `source` where the file system allows it, else a copy.

    Only for files that nobody changes in place, as everything in the store.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
