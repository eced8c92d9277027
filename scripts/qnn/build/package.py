"""Puts a package together: the files that are verified and then handed out. A job for a child: it needs numpy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qnn.files import link_or_copy
from qnn.prepare.prepared import PreparedGraph

# How many samples travel with a bundle as golden inputs and outputs.
GOLDEN_SAMPLES = 1


@dataclass(frozen=True)
class PackageGraph:
    """Add one graph to a package: where its binary and wrapper are, and its first samples and float results (.npz)."""

    facts: PreparedGraph
    compiled: Path
    samples: tuple[Path, ...]
    references: tuple[Path, ...]
    folder: Path


def package_graph(request: PackageGraph) -> None:
    """Put ``<graph>.bin``, ``<graph>_ctx.onnx`` and ``golden/<graph>/…`` into the package's folder."""
    from qnn.verify.golden import write_golden  # noqa: PLC0415 - the parent imports this module, and never numpy

    facts = request.facts
    for name in (f"{facts.graph}.bin", f"{facts.graph}_ctx.onnx"):
        link_or_copy(request.compiled / name, request.folder / name)
    write_golden(
        request.folder,
        facts.graph,
        inputs=facts.inputs,
        outputs=facts.outputs,
        samples=request.samples[:GOLDEN_SAMPLES],
        references=request.references[:GOLDEN_SAMPLES],
    )
