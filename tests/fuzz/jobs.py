"""Jobs of the fuzzers, which run in the child process of the host."""

from __future__ import annotations

from qnn.prepare.pipeline import prepare
from qnn.prepare.prepared import PreparedGraph, load_prepared
from qnn.prepare.request import PrepareRequest


def prepare_and_load(request: PrepareRequest) -> PreparedGraph:
    """Prepare, and read back what was written beside the graph."""
    made = prepare(request)
    if load_prepared(request.folder) != made:
        raise AssertionError("prepared.json says something else")
    return made
