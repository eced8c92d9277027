"""Calls data.py and metric.py through runner.py and turns its answers into results."""

from __future__ import annotations

from pathlib import Path

from qnn.model_code.call import absolute, call
from qnn.model_code.requests import DataRequest, MetricPair, MetricRequest


def run_data(request: DataRequest) -> tuple[Path, ...]:
    """The samples of a graph as .npz files, in order; the same code gives the same bytes.

    Each file holds exactly the graph's inputs, in the graph's order, with its shapes and dtypes and finite values.
    Raises the errors of qnn.errors.model_code (QF801 to QF810) with the line of data.py they come from.
    """
    call(
        request.code,
        {
            "action": "data",
            "graph": request.graph,
            "inputs": [[tensor.name, tensor.dtype, list(tensor.shape)] for tensor in request.inputs],
            "sources": absolute(request.sources),
            "count": request.count,
            "output": str(request.output.absolute()),
        },
    )
    return tuple(request.output / f"{number:03d}.npz" for number in range(request.count))


def run_metric(request: MetricRequest) -> tuple[MetricPair, ...]:
    """The metric's values of each sample, on float and on HTP results; one process for all calls.

    Raises the errors of qnn.errors.model_code (QF801 to QF804, QF811, QF812).
    """
    answer = call(
        request.code,
        {
            "action": "metric",
            "graph": request.graph,
            "sources": absolute(request.sources),
            "samples": [
                [str(file.absolute()) for file in (sample.inputs, sample.reference, sample.outputs)]
                for sample in request.samples
            ],
        },
    )
    return tuple(MetricPair(on_float, on_htp) for on_float, on_htp in answer["values"])
