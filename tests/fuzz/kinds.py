"""The kinds of input, each with what one attempt does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random

from qnn.child import Host
from tests.fuzz import archives, documents, graphs

Attempt = Callable[[Random, Path], object]


def kinds(host: Host) -> Mapping[str, Attempt]:
    """By name; each draws one input from a `Random`, gives it to the commands, with an empty folder for whatever is
    needed, and raises AssertionError when one of them did what it must not do.
    """
    return {
        "yaml": documents.attempt,
        "onnx": partial(graphs.attempt, host=host),
        "verify": archives.attempt_verify,
        "pull": archives.attempt_pull,
        "index": archives.attempt_index,
        "inspect": archives.attempt_inspect,
    }
