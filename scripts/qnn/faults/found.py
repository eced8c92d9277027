"""A known fault met in a graph. Light: imports neither onnx nor the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FoundFault:
    """One node that meets an entry of the table of faults.

    `pattern` is the name of the matcher that found it, which entries of the table name; `node` and `op_type` name the
    node, `detail` says what of it fits the pattern, and `outputs` are the graph outputs that depend on it.
    """

    pattern: str
    node: str
    op_type: str
    detail: str
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"node {self.node!r} ({self.op_type}): {self.detail}"
