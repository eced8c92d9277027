"""What a toolchain is: a QAIRT version and three verbs. Everything else in qnn-forge is blind to which one it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from qnn.binary.info import ContextBinary
from qnn.child import Host, Limits
from qnn.chips.table import Soc
from qnn.prepare.prepared import PreparedGraph
from qnn.verify.comparison import OutputComparison


@dataclass(frozen=True)
class ToolchainId:
    """Which toolchain made a binary.

    `qairt` is the SDK version (2.51.0); `build_id` the exact build when it is known beforehand
    (v2.51.0.260929181845); `packages` the versions of the packages that take part, by name.
    """

    name: str
    qairt: str
    build_id: str | None
    packages: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CompileRequest:
    """Compile one prepared graph for one chip.

    `prepared_folder` holds the graph's files as qnn.prepare left them; `output` (empty, existing) receives
    ``<graph>.bin`` and ``<graph>_ctx.onnx``.
    """

    graph: PreparedGraph
    prepared_folder: Path
    soc: Soc
    precision: str
    output: Path


@dataclass(frozen=True)
class RunRequest:
    """Run one graph of a package on the emulator over samples and compare with the float reference.

    `folder` holds ``<graph>.bin`` and ``<graph>_ctx.onnx``. `samples` and `references` are .npz files in the same
    order, keys being tensor names; without references the outputs are kept and not compared. `output` (existing)
    receives the emulator's outputs as ``000.npz`` ….
    """

    graph: str
    outputs: tuple[str, ...]
    folder: Path
    soc_id: int
    samples: tuple[Path, ...]
    references: tuple[Path, ...]
    output: Path


class Toolchain(Protocol):
    """One QAIRT version and how it is installed."""

    @property
    def identity(self) -> ToolchainId:
        """Which toolchain this is; part of the digest of everything it makes."""

    @property
    def code_modules(self) -> Sequence[str]:
        """Modules whose source is part of the digest of what `compile` and `run` make."""

    def compile(self, request: CompileRequest, host: Host, *, log: Path, limits: Limits) -> ContextBinary:
        """Compile, read back, and hold the result against the plan; raises QF4xx, QF5xx and QF603."""

    def run(self, request: RunRequest, host: Host, *, log: Path, limits: Limits) -> tuple[OutputComparison, ...]:
        """Load the package's own files, run them, compare; raises QF512 and QF514."""

    def describe(self, path: Path, host: Host, *, log: Path) -> ContextBinary:
        """Read any context binary; raises QF600 to QF602."""
