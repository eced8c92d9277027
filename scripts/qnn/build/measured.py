"""What verification measured of one graph, as it is kept in the store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from qnn.verify.comparison import OutputComparison

_FILE = "comparisons.json"

Scalar = float | str | bool


@dataclass(frozen=True)
class MetricValue:
    """One value of the task metric on one sample: of the float results and of the HTP results."""

    name: str
    sample: int
    float_value: Scalar
    htp_value: Scalar


@dataclass(frozen=True)
class Measured:
    """All that is known of a graph's numbers: one comparison an output, the metric's values."""

    outputs: tuple[OutputComparison, ...]
    metrics: tuple[MetricValue, ...]


def save_measured(outputs: tuple[OutputComparison, ...], folder: Path) -> None:
    """Write comparisons.json."""
    from cattrs import unstructure  # noqa: PLC0415

    (folder / _FILE).write_text(json.dumps(unstructure(outputs), sort_keys=True, indent=1), encoding="utf-8")


def load_measured(folder: Path) -> tuple[OutputComparison, ...]:
    """Read comparisons.json."""
    from cattrs import structure  # noqa: PLC0415

    document = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    return structure(document, tuple[OutputComparison, ...])
