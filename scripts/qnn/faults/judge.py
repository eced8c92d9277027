"""What found faults mean for a chip and a precision: a refusal before compiling, a hint behind a failed gate. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from qnn.errors.faults import KnownFault
from qnn.faults.found import FoundFault
from qnn.faults.table import Fault, Outcome, load_faults
from qnn.prepare.prepared import Change

_SHOWN = 6


def refusal(graph: str, soc: str, arch: str, precision: str, faults: Sequence[FoundFault]) -> KnownFault | None:
    """The error for a graph that this chip is known to compute wrongly, or None. `soc` is the chip's name."""
    met = _met(Outcome.REFUSED, precision, arch, faults)
    if not met:
        return None
    first = met[0][1]
    return KnownFault(
        f"{graph} on {soc}: {first.title} ({first.id})",
        remedy=first.remedy,
        details=[f"{found} → {fault.remedy}" for found, fault in met],
    )


def hints(outputs: Sequence[str], precision: str, arch: str, faults: Sequence[FoundFault]) -> list[str]:
    """For outputs that missed a gate: nodes before them that are known to go wrong for some data, and what to do."""
    wanted = set(outputs)
    before = [found for found in faults if not wanted.isdisjoint(found.outputs)]
    met = _met(Outcome.WATCHED, precision, arch, before)
    lines = [f"suspect {found} → {fault.remedy}" for found, fault in met[:_SHOWN]]
    if len(met) > _SHOWN:
        lines.append(f"and {len(met) - _SHOWN} more nodes that are known to go wrong for some data")
    return lines


def unmended(changes: Sequence[Change]) -> list[str]:
    """The nodes that a rewrite would have mended and did not, with its reason."""
    return [f"suspect node {change.subject}: {change.detail}" for change in changes if change.kind == "not-rewritten"]


def _met(outcome: Outcome, precision: str, arch: str, faults: Sequence[FoundFault]) -> list[tuple[FoundFault, Fault]]:
    """Each found fault with its entry, in the table's order, where the entry speaks of this precision and arch."""
    return [
        (found, fault)
        for fault in load_faults()
        if fault.outcome is outcome and fault.concerns(precision, arch)
        for found in faults
        if found.pattern == fault.matcher
    ]
