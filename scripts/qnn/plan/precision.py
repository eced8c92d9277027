"""What the words for precisions mean."""

from __future__ import annotations

# Precisions whose arithmetic is floating point on the NPU; all others are integer with scale and offset.
_FLOAT = frozenset({"fp16"})


def is_float(precision: str) -> bool:
    """Whether a graph of this precision needs a chip with fp16."""
    return precision in _FLOAT
