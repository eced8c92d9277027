"""What the rules look at. Built in a child, where onnx is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from qnn.chips.soc import Soc
from qnn.hints.facts import Found, Hint
from qnn.hints.qnn_graph import QnnGraph
from qnn.prepare.rewrites.view import GraphView


@dataclass(frozen=True)
class Filled:
    """How much of a bucket's axis the samples fill: the furthest element that is not the padding at its end."""

    tensor: str
    symbol: str
    size: int
    used: int


@dataclass(frozen=True)
class Seen:
    """One graph on one chip: the ONNX graph as it is compiled, the QNN graph, and facts read back from the binary.

    `spill_bytes` is the spill/fill buffer, None where the binary does not say; `filled` is of the samples.
    """

    view: GraphView
    qnn: QnnGraph
    soc: Soc
    float_graph: bool
    spill_bytes: int | None
    filled: tuple[Filled, ...]
    integer_chips: tuple[str, ...]

    @property
    def element_bytes(self) -> int:
        """Bytes of an activation's element: HTP computes float graphs in 16 bits; 1 of quantized ones at least."""
        return 2 if self.float_graph else 1


@dataclass(frozen=True)
class Rule:
    """One hint. `why` says what it costs, `change` what to do; `look` finds occasions and is pure."""

    id: str
    title: str
    why: str
    change: str
    look: Callable[[Seen], Iterable[Found]]

    def hints(self, seen: Seen) -> tuple[Hint, ...]:
        """The hints of a graph by this rule."""
        return tuple(Hint(self.id, self.title, one.text, self.change, one.details) for one in self.look(seen))
