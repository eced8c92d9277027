"""What is known of an exported file, and export.json, where it lies beside it. Light: imports no onnx."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

EXPORT_JSON = "export.json"
PARITY_JSON = "parity.json"


@dataclass(frozen=True)
class ExportFacts:
    """How a graph was exported: ``torch.export`` or ``legacy``, its opset, the packages that had a say.

    `files` are the names in its folder, the ``.onnx`` first.
    """

    exporter: str
    opset: int
    packages: Mapping[str, str]
    files: tuple[str, ...]


@dataclass(frozen=True)
class ParityFacts:
    """The worst of all outputs and samples, exported file against module: cosine, and the largest difference.

    `cosine` is None where no output is of floating point. `double` says that the module itself is as far from its own
    results in double precision.
    """

    cosine: float | None
    max_abs: float
    double: bool


def save_export(facts: ExportFacts, folder: Path) -> None:
    """Write export.json (sorted keys, so the same facts are the same bytes)."""
    _save(facts, folder / EXPORT_JSON)


def load_export(folder: Path) -> ExportFacts:
    """The facts in `folder`; the store has checked their sha256, so they are read as they are."""
    document = json.loads((folder / EXPORT_JSON).read_text(encoding="utf-8"))
    return ExportFacts(document["exporter"], document["opset"], document["packages"], tuple(document["files"]))


def save_parity(facts: ParityFacts, folder: Path) -> None:
    """Write parity.json."""
    _save(facts, folder / PARITY_JSON)


def load_parity(folder: Path) -> ParityFacts:
    """The facts in `folder`, read as they are."""
    return ParityFacts(**json.loads((folder / PARITY_JSON).read_text(encoding="utf-8")))


def _save(facts: ExportFacts | ParityFacts, file: Path) -> None:
    file.write_text(json.dumps(asdict(facts), indent=2, sort_keys=True) + "\n", encoding="utf-8")
