"""The task metric of all samples in one line a value: the worst sample speaks for all. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qnn.build.measured import MetricValue
from qnn.bundle.manifest import ManifestMetric
from qnn.model.spec import MetricGate
from qnn.verify.gates import describe_metric_gate


def summarise(values: Sequence[MetricValue], gates: Mapping[str, MetricGate]) -> tuple[ManifestMetric, ...]:
    """One entry a name, in the order metric.py returned them, with the values of the sample that is nearest to
    missing its gate (without a gate: where float and HTP differ most)."""
    names = dict.fromkeys(value.name for value in values)
    return tuple(_summary([value for value in values if value.name == name], gates.get(name)) for name in names)


def _summary(values: Sequence[MetricValue], gate: MetricGate | None) -> ManifestMetric:
    worst = max(values, key=lambda value: _badness(value, gate))  # max keeps the first of equals
    return ManifestMetric(
        name=worst.name,
        samples=len(values),
        equal=sum(_same(value) for value in values),
        float_value=worst.float_value,
        htp_value=worst.htp_value,
        gate="none" if gate is None else describe_metric_gate(gate),
    )


def _badness(value: MetricValue, gate: MetricGate | None) -> float:
    on_float, on_htp = value.float_value, value.htp_value
    if isinstance(on_float, str | bool) or isinstance(on_htp, str | bool) or (gate is not None and gate.equal):
        return 0.0 if _same(value) else 1.0
    if gate is not None and gate.minimum is not None:
        return -on_htp
    if gate is not None and gate.maximum is not None:
        return on_htp
    if gate is not None and gate.max_drop is not None:
        return on_float - on_htp
    return abs(on_float - on_htp)


def _same(value: MetricValue) -> bool:
    return type(value.float_value) is type(value.htp_value) and value.float_value == value.htp_value
