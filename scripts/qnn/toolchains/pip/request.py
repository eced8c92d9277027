"""What the compile job is asked to do. Light: the parent process imports this, and never onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass

from qnn.binary.gate import ExpectedBinary
from qnn.chips.table import Soc


@dataclass(frozen=True)
class CompileJob:
    """Compile ``<graph>.onnx`` of the working directory for one chip.

    `float_graph` is True where the graph's arithmetic is floating point. The working directory is a scratch folder
    that already holds the graph (and its external data) under fixed names; `output` receives ``<graph>.bin`` and
    ``<graph>_ctx.onnx``. `log` is the file that the job's stdout and stderr go to.
    """

    graph: str
    soc: Soc
    float_graph: bool
    expected: ExpectedBinary
    output: str
    log: str
