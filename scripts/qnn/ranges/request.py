"""What a range run is asked to do. Light: the parent process imports this."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Bytes of tensors that are held at once, at least; see RangeRequest.
BUDGET = 32 << 20


@dataclass(frozen=True)
class RangeRequest:
    """Run the prepared graph `model` (an ONNX file, its data beside it) on `samples`, one after the other.

    `samples` are .npz files whose keys are the graph's inputs. `output` (existing) receives ranges.json. At most
    about `budget` bytes of intermediate tensors are held at once, or as many as the weights have: each group of
    tensors is a run of its own, from the inputs on. Picklable.
    """

    graph: str
    model: Path
    samples: tuple[Path, ...]
    output: Path
    budget: int = BUDGET
