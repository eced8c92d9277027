"""What is odd about a context binary, said without a plan to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qnn.binary.info import ContextBinary


@dataclass(frozen=True)
class ChipFacts:
    """What the chip table says of the chip a binary was compiled for; `arch` as "v75", `vtcm_mb` in MB."""

    name: str
    arch: str
    vtcm_mb: int


def remarks(binary: ContextBinary, chip: ChipFacts | None) -> tuple[str, ...]:
    """One sentence for each thing a user should know before shipping the binary; `chip` None: not in the table."""
    return tuple(_remarks(binary, chip))


def _remarks(binary: ContextBinary, chip: ChipFacts | None) -> Iterator[str]:
    if binary.soc_model is None:
        yield f"info version {binary.info_version} does not say which chip it was compiled for"
        return
    if binary.soc_model == 0:
        yield "compiled for no chip (socModel 0): the compiler was given a chip name it did not know, or none"
        return
    if chip is None:
        yield f"soc_model {binary.soc_model} is not in the chip table"
        return
    if binary.dsp_arch is not None and f"v{binary.dsp_arch}" != chip.arch:
        yield f"compiled for v{binary.dsp_arch}, {chip.name} is {chip.arch}"
    for index, graph in enumerate(binary.graphs):
        if graph.vtcm_mb is not None and graph.vtcm_mb > chip.vtcm_mb:
            yield f"graph {index} wants {graph.vtcm_mb} MB of VTCM, more than {chip.name} has ({chip.vtcm_mb} MB)"
        elif graph.vtcm_mb is not None and graph.vtcm_mb < chip.vtcm_mb:
            yield f"graph {index} uses {graph.vtcm_mb} MB of VTCM, less than {chip.name} has ({chip.vtcm_mb} MB)"
