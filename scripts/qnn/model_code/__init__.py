"""Runs a model's own data.py and metric.py: code from a pull request, in a process apart, in the model's environment.

The process is no sandbox against malice: it runs as the same user. It keeps honest code from depending on the machine
it was written on, keeps secrets out of its reach, and turns every way it can fail into one clear error.
"""

from qnn.model_code.chain import ChainMetricRequest, FeedRequest, Ran, run_chain_metric, run_feed
from qnn.model_code.environment import environment_python
from qnn.model_code.requests import DataRequest, MetricPair, MetricRequest, MetricSample, ModelCode, Scalar
from qnn.model_code.run import run_data, run_metric
from qnn.model_code.shipped import take_samples

__all__ = [
    "ChainMetricRequest",
    "DataRequest",
    "FeedRequest",
    "MetricPair",
    "MetricRequest",
    "MetricSample",
    "ModelCode",
    "Ran",
    "Scalar",
    "environment_python",
    "run_chain_metric",
    "run_data",
    "run_feed",
    "run_metric",
    "take_samples",
]
