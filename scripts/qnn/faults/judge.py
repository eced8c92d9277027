"""What found faults mean for a chip and a precision: a refusal before compiling, a hint behind a failed gate. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from qnn.errors.faults import KnownFault
from qnn.faults.found import FoundFault
from qnn.faults.table import Outcome, fault_by_id

_SHOWN = 6


def refusal(graph: str, soc: str, arch: str, precision: str, faults: Sequence[FoundFault]) -> KnownFault | None:
    """The error for a graph that this chip is known to compute wrongly, or None. `soc` is the chip's name."""
    met = [found for found in faults if _holds(found, Outcome.REFUSED, precision, arch)]
    if not met:
        return None
    entries = {found.fault: fault_by_id(found.fault) for found in met}
    first = next(iter(entries.values()))
    return KnownFault(
        f"{graph} on {soc}: {first.title} ({first.id})",
        remedy=first.remedy,
        details=[f"{found} → {entries[found.fault].remedy}" for found in met],
    )


def hints(outputs: Sequence[str], precision: str, arch: str, faults: Sequence[FoundFault]) -> list[str]:
    """For outputs that missed a gate: nodes before them that are known to go wrong for some data, and what to do."""
    wanted = set(outputs)
    met = [
        found
        for found in faults
        if _holds(found, Outcome.WATCHED, precision, arch) and not wanted.isdisjoint(found.outputs)
    ]
    lines = [f"suspect {found} → {fault_by_id(found.fault).remedy}" for found in met[:_SHOWN]]
    if len(met) > _SHOWN:
        lines.append(f"and {len(met) - _SHOWN} more nodes that are known to go wrong for some data")
    return lines


def _holds(found: FoundFault, outcome: Outcome, precision: str, arch: str) -> bool:
    fault = fault_by_id(found.fault)
    return fault.outcome is outcome and fault.concerns(precision, arch)
