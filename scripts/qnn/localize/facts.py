"""What localizing looks at and what it found. Light: imports neither onnx nor NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


@dataclass(frozen=True)
class NodeFacts:
    """One node of the graph as it is compiled, inputs without constants. `name` and `op` are the prepared graph's."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Survey:
    """The graph as it is compiled: its nodes in order, its inputs and outputs, and bytes of each tensor to look at.

    `sizes` has only tensors that may be made outputs: floats, and of a quantized graph those that are dequantized.
    `file` is its ONNX file; the files it refers to lie beside it.
    """

    file: Path
    nodes: tuple[NodeFacts, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Stretch:
    """Nodes `start` to `stop` (not included) of a survey, in its order."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """How many nodes."""
        return self.stop - self.start


@dataclass(frozen=True)
class Spread:
    """How an error lies along one axis of `size`: `indices` are the worst, and hold `share` of its energy."""

    axis: int
    size: int
    indices: tuple[int, ...]
    share: float


@dataclass(frozen=True)
class Measured:
    """One tensor on the emulator against the same graph on the CPU.

    `wrong` says in words why it does not agree, and is empty where it does. `max_abs` is the largest error and `peak`
    the largest magnitude on the CPU; `saturated` counts elements that stand for overflow, `not_finite` infinities and
    NaNs of the emulator. `spread` is given for wrong tensors, one entry an axis along which the error is uneven.
    """

    tensor: str
    shape: tuple[int, ...]
    cosine: float
    gain_error: float
    max_abs: float
    peak: float
    saturated: int
    not_finite: int
    wrong: str
    spread: tuple[Spread, ...] = ()


@dataclass(frozen=True)
class QnnOp:
    """One QNN operator (its type), and the ONNX nodes it was made of, by name; none for what the compiler put in."""

    op: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Measurement:
    """What one compile and run gave: the tensors, and the QNN operators the stretch became, in order."""

    tensors: tuple[Measured, ...]
    ops: tuple[QnnOp, ...]

    @property
    def wrong(self) -> bool:
        """Whether any tensor is."""
        return any(tensor.wrong for tensor in self.tensors)


class Cause(StrEnum):
    """What a node alone, with the true values at its inputs, says of it."""

    NODE = "node"  # wrong alone too: its own fault
    INPUTS = "inputs"  # right alone: it carries on, or makes larger, what its inputs brought
    UNKNOWN = "unknown"  # alone it does not compile or run


@dataclass(frozen=True)
class Culprit:
    """The first wrong tensor of a search, and the nodes that make it (several only where no probe fits between them).

    `seen` is the tensor with the graph before it on the NPU, `alone` with these nodes alone there; `qnn` are the QNN
    operators they became. `rest` are the graph's outputs when all after these nodes gets true values.
    """

    tensor: str
    nodes: tuple[NodeFacts, ...]
    qnn: tuple[str, ...]
    seen: Measured
    cause: Cause
    alone: Measured | None
    reason: str
    rest: tuple[Measured, ...]


@dataclass(frozen=True)
class Step:
    """One step of a bisection: a stretch on true values, and its worst cosine."""

    start: int
    stop: int
    cosine: float
    wrong: bool


@dataclass(frozen=True)
class Unprobed:
    """A tensor that could not be looked at, and why."""

    tensor: str
    reason: str


@dataclass(frozen=True)
class Located:
    """A whole search on one graph of one target with one sample.

    `outputs` are the graph's own on the NPU; `preparation` the prepared graph on the CPU against the float model: what
    is wrong there is not the NPU's doing. `spread_out` says that every part alone is right and only the whole is not.
    """

    target: str
    graph: str
    sample: int
    threshold: float
    nodes: int
    outputs: tuple[Measured, ...]
    preparation: tuple[Measured, ...]
    culprits: tuple[Culprit, ...]
    steps: tuple[Step, ...]
    unprobed: tuple[Unprobed, ...]
    probed: int
    compiles: int
    spread_out: bool
