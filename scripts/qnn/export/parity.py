"""Compares the exported file's results with the module's, sample by sample. A job for a child."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qnn.export.facts import ParityFacts


@dataclass(frozen=True)
class ParityRequest:
    """.npz files of each sample, in order: what the module gave, what the file gave (output names as keys).

    `double` are the module's results in double precision, empty where they are not wanted. Picklable.
    """

    module: tuple[Path, ...]
    exported: tuple[Path, ...]
    double: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Miss:
    """An output that is too far off on a sample, and how far in words."""

    output: str
    sample: int
    words: str


@dataclass(frozen=True)
class Parity:
    """The worst numbers of all, and what missed the gate: no more than one a sample and output."""

    facts: ParityFacts
    misses: tuple[Miss, ...]


def parity(request: ParityRequest) -> Parity:
    """Compare every output of every sample."""
    from qnn.export.difference import difference, excused  # noqa: PLC0415 - NumPy; the parent imports this module
    from qnn.npz import read_npz  # noqa: PLC0415

    misses: list[Miss] = []
    cosines: list[float] = []
    distances = [0.0]
    doubles: tuple[Path | None, ...] = request.double or (None,) * len(request.module)
    for number, files in enumerate(zip(request.module, request.exported, doubles, strict=True)):
        module, exported = read_npz(files[0]), read_npz(files[1])
        double = None if files[2] is None else read_npz(files[2])
        if list(module) != list(exported):
            words = f"the file has the outputs {', '.join(exported)}, the module {', '.join(module)}"
            misses.append(Miss("", number, words))
            continue
        for name in module:
            found = difference(module[name], exported[name])
            if found.cosine is not None:
                cosines.append(found.cosine)
            if found.other is None:
                distances.append(found.max_abs)
            if not found.passes and (double is None or not excused(module[name], exported[name], double[name])):
                misses.append(Miss(name, number, str(found)))
    facts = ParityFacts(min(cosines, default=None), max(distances), bool(request.double))
    return Parity(facts, tuple(misses))
