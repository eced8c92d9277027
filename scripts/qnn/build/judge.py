"""Holds what was measured of a graph against the model's gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qnn.build.chained import Chained
from qnn.build.measured import Measured, MetricValue
from qnn.errors.chains import ChainDiverged
from qnn.faults.found import FoundFault
from qnn.model.spec import Checks, MetricGate
from qnn.plan.targets import Target
from qnn.prepare.prepared import Change
from qnn.verify.comparison import OutputComparison
from qnn.verify.gates import Verdict, judge, judge_metric, metric_error, verify_error


def judge_graph(
    target: Target,
    graph: str,
    measured: Measured,
    faults: Sequence[FoundFault] = (),
    changes: Sequence[Change] = (),
) -> None:
    """Raise the error of the worst output (QF620, QF622, QF623), else of the metric (QF621), if a gate failed.

    `faults` are those met in the graph: the error names the nodes among them that the failed outputs depend on, and
    the nodes that a rewrite would have mended and did not (`changes` are what preparation did).
    """
    where = f"{target.variant.name} {graph} on {target.soc.name}"
    checks = target.variant.model.checks
    precision = target.variant.precision
    verdicts = [verdict_of(checks, graph, output, precision) for output in measured.outputs]
    error = verify_error(where, verdicts)
    if error is not None:
        from qnn.faults.judge import hints, unmended  # noqa: PLC0415 - reads the table, which a build that passes does not need

        failed = [verdict.output for verdict in verdicts if not verdict.passed]
        error.details = (*error.details, *hints(failed, precision, target.soc.arch, faults), *unmended(changes))
        raise error
    _judge_metrics(where, measured.metrics, checks.metric_gates.get(graph, {}))


def judge_chain(target: Target, chained: Chained) -> None:
    """Raise the error of a chain's metric (QF621) if a gate failed.

    Without a metric the outputs of the last graph must pass that graph's gates, or ChainDiverged (QF652) is raised
    where HTP ran it another number of times.
    """
    checks, precision = target.variant.model.checks, target.variant.precision
    where = f"the chain of {target.variant.name} on {target.soc.name}"
    assert checks.chain is not None
    if checks.chain.metric is not None:
        _judge_metrics(where, chained.metrics, checks.chain.metric_gates)
        return
    last = chained.graphs[-1]
    if not last.outputs:
        raise ChainDiverged(
            f"{where}: {last.name} ran {last.htp_runs} times, and {last.float_runs} times on float",
            remedy="add checks.chain.metric, which judges what comes out in the end",
        )
    error = verify_error(where, [verdict_of(checks, last.name, output, precision) for output in last.outputs])
    if error is not None:
        raise error


def _judge_metrics(where: str, metrics: Sequence[MetricValue], gates: Mapping[str, MetricGate]) -> None:
    for sample in sorted({value.sample for value in metrics}):
        values = [value for value in metrics if value.sample == sample]
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
