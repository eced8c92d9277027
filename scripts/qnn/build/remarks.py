"""What a build says of a graph that it builds all the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from qnn.ranges.facts import Finding, RangeFacts

_SHOWN = 2


def range_remark(facts: RangeFacts, acknowledged: Mapping[str, str]) -> str | None:
    """One line for findings that do no harm and that model.yaml does not acknowledge (tensor → reason), or for a range
    that could not be measured; None without either. Call it only where qnn.ranges.verdict.refusal has nothing.
    """
    if facts.unmeasured:
        return f"fp16's range was not checked: {' '.join(facts.unmeasured.split())}"
    found = [finding for finding in facts.findings if finding.tensor not in acknowledged]
    if not found:
        return None
    shown = [f"{finding.tensor} ({_maker(finding)}) {finding.detail}" for finding in found[:_SHOWN]]
    left = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    leave = "1 tensor leaves" if len(found) == 1 else f"{len(found)} tensors leave"
    return (
        f"{leave} fp16's range, and the outputs come out right all the same: "
        f"{'; '.join([*shown, *left])} (`qnn-forge range` says more)"
    )


def _maker(finding: Finding) -> str:
    return f"node {finding.node}" if finding.node else finding.op
