"""Paths that a model.yaml names: where they may lead, and what stands there."""

from __future__ import annotations

import os
from pathlib import Path

_LONGEST = 400  # as the schema allows


def why_not_relative(path: str) -> str | None:
    """Why a text is not a path to something inside a folder or archive, whatever the system; None if it is one."""
    if len(path) > _LONGEST:
        return f"it is longer than {_LONGEST} characters"
    if path.startswith(("/", "~")) or path[1:2] == ":":
        return "it is absolute"
    if "\\" in path:
        return "it has a backslash; folders are separated by /"
    steps = path.removesuffix("/").split("/")
    if ".." in steps:
        return 'it leads out of its folder by ".."'
    if "" in steps or "." in steps:
        return "it has an empty step or a lone dot"
    return None


def is_file(folder: Path, path: str) -> bool:
    """Whether a relative path is a file inside the folder. Raises nothing, whatever the path."""
    return _is_inside(folder, path) and os.path.isfile(folder / path)


def is_folder(folder: Path, path: str) -> bool:
    """Whether a relative path is a folder inside the folder. Raises nothing, whatever the path."""
    return _is_inside(folder, path) and os.path.isdir(folder / path)


def _is_inside(folder: Path, path: str) -> bool:
    return why_not_relative(path) is None and not leaves(folder, path)


def leaves(folder: Path, path: str) -> bool:
    """Whether a relative path leads out of the folder when symbolic links are followed. Raises nothing."""
    inside = os.path.realpath(folder)
    target = os.path.realpath(os.path.join(inside, path))
    return os.path.commonpath([inside, target]) != inside
