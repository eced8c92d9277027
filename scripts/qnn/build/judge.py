"""Holds what was measured of a graph against the model's gates."""

from __future__ import annotations

from qnn.build.measured import Measured
from qnn.model.spec import Checks
from qnn.plan.targets import Target
from qnn.verify.comparison import OutputComparison
from qnn.verify.gates import Verdict, judge, judge_metric, metric_error, verify_error


def judge_graph(target: Target, graph: str, measured: Measured) -> None:
    """Raise the error of the worst output (QF620, QF622, QF623), else of the metric (QF621), if a gate failed."""
    where = f"{target.variant.name} {graph} on {target.soc.name}"
    checks = target.variant.model.checks
    precision = target.variant.precision
    error = verify_error(where, [verdict_of(checks, graph, output, precision) for output in measured.outputs])
    if error is not None:
        raise error
    gates = checks.metric_gates.get(graph, {})
    for sample in sorted({value.sample for value in measured.metrics}):
        values = [value for value in measured.metrics if value.sample == sample]
        failures = judge_metric(
            {value.name: value.float_value for value in values},
            {value.name: value.htp_value for value in values},
            gates,
        )
        fault = metric_error(f"{where}, sample {sample}", failures)
        if fault is not None:
            raise fault


def verdict_of(checks: Checks, graph: str, output: OutputComparison, precision: str) -> Verdict:
    """One output against its own gates where model.yaml names them, else the model's, else the defaults."""
    return judge(output, checks.gates, checks.output_gates.get(graph, {}).get(output.name), precision)
