"""A hint, and what hints of one graph are asked for. Light: the parent process imports this."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qnn.chips.soc import Soc


@dataclass(frozen=True)
class Found:
    """One occasion of a rule: what was seen, with its numbers, and a line for each node or tensor to blame."""

    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hint:
    """A hint as it is shown: the rule's id and title, what was found, what to change."""

    id: str
    title: str
    found: str
    change: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class BucketAxis:
    """An axis of an input whose size comes from a bucket's symbol."""

    tensor: str
    axis: int
    symbol: str


@dataclass(frozen=True)
class HintRequest:
    """Look at one prepared graph (its files, the ONNX file first) as it is compiled for one chip.

    `samples` are .npz files of its inputs. `integer_chips` are the chips without floating point that the model asks
    for as such, where it has no precision for them. The job works in the current folder, which is empty.
    """

    graph: str
    files: tuple[Path, ...]
    soc: Soc
    float_graph: bool
    samples: tuple[Path, ...]
    axes: tuple[BucketAxis, ...]
    integer_chips: tuple[str, ...]
