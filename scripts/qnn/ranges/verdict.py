"""What a range run means for a build: pass, or an error that names nodes and remedies. Pure; no numpy."""

from __future__ import annotations

from collections.abc import Mapping

from qnn.errors.ranges import LeavesFp16
from qnn.ranges.facts import Finding, RangeFacts

_SHOWN = 8


def refusal(facts: RangeFacts, acknowledged: Mapping[str, str]) -> LeavesFp16 | None:
    """The error for harmful findings that model.yaml does not acknowledge (tensor → reason); None without any."""
    harmful = [finding for finding in facts.findings if finding.harmful and finding.tensor not in acknowledged]
    if not harmful:
        return None
    worst = min(facts.outputs, key=lambda output: (output.cosine, -output.max_rel))
    left = len(harmful) - _SHOWN
    details = [line for finding in harmful[:_SHOWN] for line in lines(finding)]
    return LeavesFp16(
        f"{facts.graph}: {_count(len(harmful))} fp16's range, and output {worst.name} comes out wrong "
        f"(cosine {worst.cosine:.3f} predicted)",
        remedy=_remedy(harmful),
        details=[*details, *([f"and {left} more; `qnn-forge range` shows all"] if left > 0 else [])],
    )


def lines(finding: Finding) -> tuple[str, str]:
    """A finding as a person reads it: where and what, then what to do."""
    where = f"node {finding.node or '(no name)'} ({finding.op})" if finding.node else finding.op
    return f"{where}: {finding.tensor} {finding.detail}", f"  → {finding.remedy}"


def _count(number: int) -> str:
    return f"{number} tensor{'s leave' if number > 1 else ' leaves'}"


def _remedy(harmful: list[Finding]) -> str:
    rewrites = sorted({finding.rewrite for finding in harmful if finding.rewrite is not None})
    if rewrites:
        wanted = ", ".join(f"{name}: true" for name in rewrites)
        return f"add `rewrites: {{{wanted}}}` to the graph in model.yaml"
    return "do what the lines say; or acknowledge the tensors under checks.ranges, with a reason"
